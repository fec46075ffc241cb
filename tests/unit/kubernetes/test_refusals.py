"""What is said of a pod that was not made. The messages are an API server's of Kubernetes 1.34."""

from __future__ import annotations

import pytest

from killpoint.kubernetes.refusals import Answer, refusal_of

FORBIDDEN = 'pods "kp-1" is forbidden: '


def answer(message: str, *, code: int = 403, reason: str = "Forbidden", causes: tuple[str, ...] = ()) -> Answer:
    return Answer(code=code, reason=reason, message=message, causes=causes)


@pytest.mark.parametrize(
    ("given", "words", "passing"),
    [
        (
            answer(f"{FORBIDDEN}exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"),
            "the namespace's ResourceQuota is used up",
            True,
        ),
        (
            answer(f"{FORBIDDEN}failed quota: q: must specify limits.cpu for: worker"),
            "wants resources named that the worker does not name",
            False,
        ),
        (
            answer(f"{FORBIDDEN}maximum memory usage per Container is 512Mi, but limit is 1Gi"),
            "does not keep to a LimitRange",
            False,
        ),
        (
            answer(f'{FORBIDDEN}violates PodSecurity "restricted:latest": runAsNonRoot != true'),
            "Pod Security admission refuses it",
            False,
        ),
        (
            answer('admission webhook "policy.example.com" denied the request: no latest tags', code=400, reason=""),
            "an admission policy of the cluster refuses it",
            False,
        ),
        (
            answer(
                'Internal error occurred: failed calling webhook "policy.example.com": connection refused',
                code=500,
                reason="InternalError",
            ),
            "an admission webhook does not answer",
            True,
        ),
        (
            answer(f'{FORBIDDEN}error looking up service account a/default: serviceaccount "default" not found'),
            "no default service account yet",
            True,
        ),
        (
            answer(
                f'{FORBIDDEN}User "system:serviceaccount:kp:kp" cannot create resource "pods" in API group "" in the'
                ' namespace "a"'
            ),
            "killpoint's service account may not do that",
            False,
        ),
        (
            answer(
                f"{FORBIDDEN}unable to create new content in namespace a because it is being terminated",
                causes=("NamespaceTerminating",),
            ),
            "the namespace is being deleted",
            False,
        ),
        (answer('namespaces "a" not found', code=404, reason="NotFound"), "there is no namespace a", False),
        (
            answer('Operation cannot be fulfilled on resourcequotas "q": modified', code=409, reason="Conflict"),
            "the API server answers 409 Conflict",
            True,
        ),
        (
            answer(
                'Pod "kp-1" is invalid: spec.containers[0].resources.requests: Invalid value: "96Mi": must be less'
                " than or equal to memory limit of 64Mi",
                code=422,
                reason="Invalid",
            ),
            "do not go together",
            False,
        ),
        (
            answer('Pod "kp-1" is invalid: spec.containers[0].image: Required value', code=422, reason="Invalid"),
            "422 Invalid: Pod",
            False,
        ),
    ],
)
def test_a_refusal_names_the_object_the_cause_and_whether_it_passes(
    given: Answer,
    words: str,
    passing: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    refusal = refusal_of(given, kind="pod", name="kp-1", namespace="a")
    assert refusal.words.startswith("pod a/kp-1 was not made: ")
    assert words in refusal.words
    assert refusal.passing is passing


def test_an_answer_that_is_no_status_keeps_its_words() -> None:
    assert Answer.of(502, None, otherwise="<html>bad gateway").message == "<html>bad gateway"


def test_an_answers_causes_are_read() -> None:
    status = {"reason": "Forbidden", "message": "m", "details": {"causes": [{"reason": "NamespaceTerminating"}]}}
    assert Answer.of(403, status, otherwise="").causes == ("NamespaceTerminating",)

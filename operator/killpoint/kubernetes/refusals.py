"""Refusals: what the API server says when it does not take an object, in words and with the remedy. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from killpoint.kubernetes.wording import quoted

NAMESPACE_ENDS = "NamespaceTerminating"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the API server answered instead of doing what it was asked: its Status object, as far as it matters."""

    code: int
    reason: str
    message: str
    causes: tuple[str, ...] = ()

    @classmethod
    def of(cls, code: int, document: Mapping[str, Any] | None, *, otherwise: str) -> Answer:
        """``otherwise``: the words where there is no Status object, as from a proxy on the way."""
        status = document or {}
        details = status.get("details") or {}
        return cls(
            code=code,
            reason=str(status.get("reason") or ""),
            message=str(status.get("message") or otherwise),
            causes=tuple(str(cause.get("reason") or "") for cause in details.get("causes") or ()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an object was not made."""

    words: str
    passing: bool
    """Whether it may be made a little later, with nobody changing anything about the experiment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    says: re.Pattern[str]
    what: str
    remedy: str
    passing: bool = False


def _kind(says: str, what: str, remedy: str, *, passing: bool = False) -> _Kind:
    return _Kind(says=re.compile(says, re.IGNORECASE), what=what, remedy=remedy, passing=passing)


_KINDS = (
    _kind(
        r"exceeded quota",
        "the namespace's ResourceQuota is used up",
        "Lower spec.parallelism or what the workers ask for, or raise the quota.",
        passing=True,
    ),
    _kind(
        r"failed quota",
        "the namespace's ResourceQuota wants resources named that the worker does not name",
        "Name them in spec.workers[].resources, or give the namespace a LimitRange with defaults.",
    ),
    _kind(
        r"violates PodSecurity",
        "Pod Security admission refuses it",
        "Use an image and a command that keep to the policy of the namespace.",
    ),
    _kind(
        r"(maximum|minimum) .* usage per (container|pod)|limit to request ratio",
        "it does not keep to a LimitRange of the namespace",
        "Change spec.workers[].resources, or the LimitRange.",
    ),
    _kind(
        r"must be less than or equal to \w+ limit|Limit must be set for non overcommitable",
        "what its worker asks for and may take do not go together",
        "Change spec.workers[].resources: no request is above its limit, and devices have both.",
    ),
    _kind(
        r"failed calling webhook",
        "an admission webhook does not answer",
        "Mend the webhook, or exempt the namespace from it.",
        passing=True,
    ),
    _kind(
        r"admission webhook .* denied|ValidatingAdmissionPolicy",
        "an admission policy of the cluster refuses it",
        "Change what the policy names, or exempt the namespace from it.",
    ),
    _kind(
        r"error looking up service account",
        "the namespace has no default service account yet",
        "Wait until the cluster has made it; is its controller manager running?",
        passing=True,
    ),
    _kind(
        r"cannot (create|get|list|patch|delete|update) resource",
        "killpoint's service account may not do that",
        "Install killpoint for this namespace, or give its role the verb.",
    ),
)


def refusal_of(answer: Answer, *, kind: str, name: str, namespace: str) -> Refusal:
    """Why an object could not be made, and what to do about it."""
    subject = f"{kind} {namespace}/{name}"
    if NAMESPACE_ENDS in answer.causes or "because it is being terminated" in answer.message:
        return Refusal(words=f"{subject} was not made: the namespace is being deleted", passing=False)
    found = next((known for known in _KINDS if known.says.search(answer.message)), None)
    if found is not None:
        words = f"{subject} was not made: {found.what}. {found.remedy} The cluster says: {quoted(answer.message)}"
        return Refusal(words=words, passing=found.passing)
    if answer.code == 404:  # noqa: PLR2004 - HTTP
        return Refusal(words=f"{subject} was not made: there is no namespace {namespace}", passing=False)
    # 409 that is no AlreadyExists: two counted against one quota at the same time.
    passing = answer.code == 409  # noqa: PLR2004 - HTTP
    return Refusal(
        words=f"{subject} was not made: the API server answers {answer.code} {answer.reason}: {quoted(answer.message)}",
        passing=passing,
    )

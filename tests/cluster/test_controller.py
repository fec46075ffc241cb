"""The operator against a real API server and kubelet: what objects say in the end, whatever is killed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.kubectl import Kubectl
from tests.cluster.objects import GONE_SECONDS_MAX, Experiments
from tests.cluster.operator_process import Operator, experiment, operator_for, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture
def operator(cluster: Kubectl) -> Iterator[Operator]:
    """An operator for the test's namespace. Pods reach it over the one-node cluster's link."""
    with operator_for(cluster) as operator:
        operator.start()
        yield operator
        operator.process.stop()
        assert "Traceback" not in operator.process.said(), operator.process.said()


def test_an_experiment_is_run_and_leaves_nothing_but_its_status(operator: Operator, experiments: Experiments) -> None:
    experiments.apply(experiment("tiny"))
    status = experiments.complete("tiny")
    assert (status["result"], status["progress"]) == ("Pass", "2/2")
    assert status["kills"] == {"planned": 1, "confirmed": 1}
    experiments.nothing_left(seconds=5)
    metadata = experiments.get("tiny")["metadata"]
    wait_for(lambda: not experiments.get("tiny")["metadata"].get("finalizers"), "the finalizer to go", seconds=5)
    assert not [name for name in metadata.get("annotations", {}) if "kubectl" not in name], (
        "the user's object is theirs"
    )
    events = experiments.kubectl.get("events", "--field-selector=involvedObject.kind=CrashExperiment")["items"]
    assert {event["reason"] for event in events} == {"Running", "AsExpected"}
    assert operator.is_well()


def test_a_mutable_edit_after_the_end_leaves_nobody_waiting(operator: Operator, experiments: Experiments) -> None:
    experiments.apply(experiment("tiny", abort=True))
    experiments.complete("tiny")
    experiments.patch("tiny", parallelism=7)
    status = experiments.complete("tiny")
    assert status["observedGeneration"] == experiments.get("tiny")["metadata"]["generation"] == 2
    assert operator.is_well()


def test_a_poisonous_object_does_not_keep_others_from_their_end(operator: Operator, experiments: Experiments) -> None:
    """chaosblade-operator#12. One that is refused, one without an image, and one that is as it should be, at once."""
    refused = experiment("refused", matrix={"setup": ["no-such-setup"], "kill": [{"at": ["charge.after"]}]})
    missing = experiment("missing", limits={"startupSeconds": 5, "inconclusiveRetries": 0})
    missing["spec"]["workers"][0]["image"] = "localhost/killpoint-no-such-image:1"
    experiments.apply(refused, missing, experiment("tiny"))
    assert experiments.complete("tiny")["result"] == "Pass"
    status = experiments.complete("refused")
    assert experiments.said("refused")["Accepted"] == ("False", "InvalidSpec")
    assert "spec.matrix.setup[0]" in status["reasons"][0]
    status = experiments.complete("missing")
    assert status["result"] == "Inconclusive"
    assert any("no-such-image" in reason for reason in status["reasons"]), status["reasons"]
    experiments.nothing_left(seconds=10)
    assert operator.is_well()


def test_an_operator_that_is_killed_is_followed_by_one_that_goes_on(
    operator: Operator, experiments: Experiments
) -> None:
    experiments.apply(experiment("tiny", pause=4, trials=2))
    experiments.runs("tiny")
    operator.process.kill()
    operator.start()
    status = experiments.complete("tiny")
    assert (status["result"], status["kills"]) == ("Pass", {"planned": 2, "confirmed": 2})
    assert status["trials"]["retries"] == 0, "what ran meanwhile was not disturbed"
    experiments.nothing_left(seconds=5)


def test_deletion_in_mid_run_leaves_nothing(operator: Operator, experiments: Experiments) -> None:
    experiments.apply(experiment("tiny", pause=300))
    experiments.runs("tiny")
    experiments.kubectl("delete", "crashexperiment", "tiny", f"--timeout={GONE_SECONDS_MAX:.0f}s")
    experiments.nothing_left()
    assert operator.is_well()


def test_deletion_while_no_operator_is_there_is_made_up_for(operator: Operator, experiments: Experiments) -> None:
    experiments.apply(experiment("tiny", pause=300))
    experiments.runs("tiny")
    operator.process.kill()
    experiments.kubectl("delete", "crashexperiment", "tiny", "--wait=false")
    assert experiments.get("tiny")["metadata"]["deletionTimestamp"]
    operator.start()
    experiments.kubectl("wait", "crashexperiment/tiny", "--for=delete", f"--timeout={GONE_SECONDS_MAX:.0f}s")
    experiments.nothing_left()


def test_an_abort_ends_what_runs(operator: Operator, experiments: Experiments) -> None:
    experiments.apply(experiment("tiny", pause=300))
    experiments.runs("tiny")
    experiments.patch("tiny", abort=True)
    status = experiments.complete("tiny")
    assert (status["phase"], status["result"]) == ("Complete", "Inconclusive")
    assert experiments.said("tiny")["Complete"] == ("True", "Aborted")
    experiments.nothing_left(seconds=5)
    assert operator.is_well()


def test_an_abort_ends_what_waits_for_its_image(operator: Operator, experiments: Experiments) -> None:
    missing = experiment("missing", limits={"startupSeconds": 600})
    missing["spec"]["workers"][0]["image"] = "localhost/killpoint-no-such-image:1"
    experiments.apply(missing)
    wait_for(lambda: any("Pod/" in item for item in experiments.left()), "a pod")
    experiments.patch("missing", abort=True)
    experiments.complete("missing")
    assert experiments.said("missing")["Complete"] == ("True", "Aborted")
    experiments.nothing_left(seconds=5)
    assert operator.is_well()


def test_a_suspended_experiment_starts_nothing_until_it_goes_on(operator: Operator, experiments: Experiments) -> None:
    experiments.apply(experiment("tiny", suspend=True))
    wait_for(lambda: experiments.said("tiny").get("Reconciling") == ("True", "Suspended"), "it to be suspended")
    assert experiments.left() == []
    experiments.patch("tiny", suspend=False)
    assert experiments.complete("tiny")["result"] == "Pass"
    assert operator.is_well()


def test_what_runs_goes_on_after_its_database_was_away(operator: Operator, experiments: Experiments) -> None:
    experiments.apply(experiment("tiny", pause=3))
    experiments.runs("tiny")
    operator.database.cut()
    wait_for(
        lambda: experiments.said("tiny").get("Complete") == ("False", "DatabaseAway"),
        f"people to be told: {experiments.said('tiny')}",
    )
    assert operator.is_well(), "an operator that waits is well"
    operator.database.mend()
    assert experiments.complete("tiny")["result"] == "Pass"


def test_retention_is_kept_to(operator: Operator, experiments: Experiments) -> None:
    experiments.apply(experiment("tiny", abort=True, retention={"experimentAfter": "3s"}))
    experiments.kubectl("wait", "crashexperiment/tiny", "--for=delete", "--timeout=60s")
    assert operator.is_well()


def test_a_namespace_can_be_deleted_with_a_run_in_it(operator: Operator, experiments: Experiments) -> None:
    experiments.apply(experiment("tiny", pause=300))
    experiments.runs("tiny")
    experiments.kubectl("delete", "namespace", experiments.kubectl.namespace, "--timeout=90s")
    assert operator.is_well()
    # The fixtures delete it once more.
    name = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": experiments.kubectl.namespace}}
    experiments.kubectl("create", "--filename=-", manifest=name)

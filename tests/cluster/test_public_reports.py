"""Public reports on operators of this kind that no other test here is about. Each test names its report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.kubectl import Kubectl
from tests.cluster.objects import Experiments
from tests.cluster.operator_process import PROGRAM, Operator, experiment, operator_for, wait_for
from tests.cluster.watched import watching

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

HANDLER = 'import signal\nsignal.signal(15,lambda *a:(say(point="handler.ran"),os._exit(3)))\n'
DEAF = "import signal\nsignal.signal(15,signal.SIG_IGN)\n"
PAUSE_SECONDS = 5


@pytest.fixture
def operator(cluster: Kubectl) -> Iterator[Operator]:
    with operator_for(cluster) as operator:
        operator.start()
        yield operator
        assert "Traceback" not in operator.process.said(), operator.process.said()


def prepared(name: str, beginning: str, *, pause: int = 0, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    """An experiment whose worker does this before anything else."""
    document = experiment(name, pause=pause, **spec)
    document["spec"]["workers"][0]["command"][-1] = PROGRAM.replace("say(killpoint=", f"{beginning}say(killpoint=", 1)
    return document


def killed_cell(status: dict[str, Any]) -> str:
    (cell,) = (cell["id"] for cell in status["cells"] if not cell["control"])
    return str(cell)


def test_a_kill_is_a_sigkill_and_no_handler_of_the_worker_runs(operator: Operator, experiments: Experiments) -> None:
    """krkn#1544: what was called a kill was a graceful delete. The handler runs at one, so it would be seen."""
    with watching(experiments.kubectl) as watched:
        experiments.apply(prepared("killed", HANDLER), prepared("asked", HANDLER, pause=PAUSE_SECONDS))
        experiments.runs("asked")
        name = pod_names(experiments, "asked")[0]
        experiments.kubectl("delete", "pod", name, "--wait=false")
        asked, killed = experiments.complete("asked"), experiments.complete("killed")
        end = watched.first_end(f"{killed_cell(killed)}.1.1")
        deleted = next(seen for seen in watched.ends() if seen.pod["metadata"]["name"] == name)
    assert (end.terminated["exitCode"], end.points[-1]) == (137, "charge.after")
    assert "handler.ran" not in end.points
    assert "handler.ran" in deleted.points
    assert asked["trials"]["retries"] == 1
    assert operator.is_well()


def test_what_comes_after_a_pod_deleted_by_force_waits_for_the_end_of_its_container(
    operator: Operator, experiments: Experiments
) -> None:
    """kubernetes#120671: with a grace of 0 the object goes at once, and its container lives on for a while."""
    with watching(experiments.kubectl) as watched:
        experiments.apply(prepared("deaf", DEAF, pause=PAUSE_SECONDS))
        experiments.runs("deaf")
        name = pod_names(experiments, "deaf")[0]
        experiments.kubectl("delete", "pod", name, "--grace-period=0", "--force", "--wait=false")
        assert experiments.complete("deaf")["result"] == "Pass"
        ends = watched.ends()
    by_name = {seen.pod["metadata"]["name"]: seen for seen in ends}
    later = [seen for seen in by_name.values() if seen.started > by_name[name].started]
    assert by_name[name].terminated["exitCode"] == 137
    assert later, "it was run again"
    assert min(seen.started for seen in later) >= by_name[name].ended
    assert operator.is_well()


def test_a_point_that_nobody_passes_is_no_success(operator: Operator, experiments: Experiments) -> None:
    """chaos-mesh#3374: nothing was hit, and the experiment succeeded."""
    never = experiment("never", limits={"inconclusiveRetries": 0})
    never["spec"]["workers"][0]["points"].append("charge.elsewhere")
    never["spec"]["matrix"]["kill"] = [{"at": ["charge.elsewhere"]}]
    never["spec"]["expect"] = [{"where": {"kill": ["charge.elsewhere"]}, "verdict": ["duplicate", "exactly-once"]}]
    experiments.apply(never)
    status = experiments.complete("never")
    assert (status["result"], status["kills"]) == ("Inconclusive", {"planned": 1, "confirmed": 0})
    assert any("charge.elsewhere" in reason for reason in status["reasons"]), status["reasons"]
    assert experiments.said("never")["FaultConfirmed"][0] == "False"
    assert operator.is_well()


def test_children_go_when_they_may_and_the_object_stays_with_its_results(
    operator: Operator, experiments: Experiments
) -> None:
    """airbyte#15202: what a GitOps controller has applied is not to be deleted behind its back."""
    experiments.apply(experiment("kept", retention={"childrenAfter": "1s"}))
    status = experiments.complete("kept")
    wait_for(lambda: not experiments.left(), f"its children to go: {experiments.left()}", seconds=10)
    assert experiments.status("kept") == status
    assert experiments.get("kept")["metadata"].get("deletionTimestamp") is None
    assert operator.is_well()


def pod_names(experiments: Experiments, name: str) -> list[str]:
    uid = experiments.get(name)["metadata"]["uid"]
    found = experiments.kubectl.get("pods", f"--selector=killpoint.dev/experiment-uid={uid}")["items"]
    return [pod["metadata"]["name"] for pod in found]

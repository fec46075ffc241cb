"""``killpoint replay``: which trials of a cluster can be run again on this machine, and what is said of the others."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from killpoint.api.load import load
from killpoint.api.replays import own_images_of, replay_words
from killpoint.cli.choose import replayed
from killpoint.cli.exits import Stop
from killpoint.core.summarize import summarize
from killpoint.journal.archive import Archive, decode_archive, run_of_archive
from killpoint.local.stack import installed_workloads
from killpoint.model.cells import Coordinates, Kill, Method
from killpoint.report.standing import replay
from tests.unit.cli.memory import PROVENANCE, Finished

MIXED = """\
apiVersion: killpoint.dev/v1alpha1
kind: CrashExperiment
metadata: {name: mixed}
spec:
  retention: {childrenAfter: 60s}
  workers: [{setup: mine, image: "registry/mine:1"}]
  matrix:
    setup: [langgraph, mine]
    store: [postgres, pod]
    kill: [{at: [charge.after]}, {at: [charge.after], method: freeze}]
  expect:
  - where: {store: [pod]}
    verdict: [lost]
"""
KILLED = Kill(at=("charge.after",), name="charge.after")
FROZEN = replace(KILLED, method=Method.FREEZE)
HERE = Coordinates(setup="langgraph", kill=KILLED)
ELSEWHERE = [
    (replace(HERE, store="pod"), '"pod" is not available on this machine'),
    (replace(HERE, kill=FROZEN), '"freeze" is not available on this machine'),
    (replace(HERE, setup="mine"), '"mine" is an image that the experiment names'),
]


def archive_at(place: Coordinates) -> tuple[Archive, str]:
    """Evidence of a cluster with one trial in this place, and the trial's id."""
    archive = decode_archive(asyncio.run(Finished.of()).evidence, source="it")
    trial = next(found for found in archive.trials if not found.evidence.coordinates.kill.is_control)
    document = load(MIXED)
    return replace(
        archive,
        document=document.model_dump(mode="json", by_alias=True),
        provenance=replace(PROVENANCE, own_images=own_images_of(document.spec)),
        trials=(replace(trial, evidence=replace(trial.evidence, coordinates=place)),),
    ), str(trial.evidence.id)


def test_a_trial_that_this_machine_can_run_is_run_whatever_else_its_experiment_asks_for() -> None:
    archive, trial = archive_at(HERE)
    document, experiment = replayed(archive, trial, installed_workloads().catalog())
    assert [cell.coordinates for cell in experiment.cells] == [replace(HERE, kill=Kill()), HERE]
    assert experiment.narrowed
    assert len(experiment.rules) == len(document.spec.expect) == 1
    assert document.spec.workers == ()


@pytest.mark.parametrize(("place", "reason"), ELSEWHERE)
def test_one_that_only_a_cluster_can_run_is_refused_and_no_command_is_offered_for_it(
    place: Coordinates, reason: str
) -> None:
    archive, trial = archive_at(place)
    with pytest.raises(Stop, match=f"trial {trial} cannot be run again on this machine: {reason}"):
        replayed(archive, trial, installed_workloads().catalog())
    assert replay_words(archive.provenance, archive.trials[0].evidence) == f"no replay on a machine: {reason}" + (
        ", and images are run in a cluster only" if place.setup == "mine" else ""
    )


def test_what_is_offered_for_a_trial_is_what_reports_print() -> None:
    archive = decode_archive(asyncio.run(Finished.of()).evidence, source="it")
    summary = summarize(run_of_archive(archive, ()), archive.provenance)
    record = summary.cells[-1].trials[0]
    assert replay(summary, record) == f"killpoint replay x {record.evidence.id}"

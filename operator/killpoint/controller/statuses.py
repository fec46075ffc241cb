"""Statuses: what is written about an experiment, from a summary or from why there is none. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from killpoint import __version__
from killpoint.api.conditions import Standing
from killpoint.api.status import document_of, fitted, status_of, time_of
from killpoint.api.v1alpha1.status import Report
from killpoint.controller.subjects import Subject
from killpoint.model.findings import Result
from killpoint.model.summary import ExperimentSummary, Provenance, Totals

Document = dict[str, Any]

SUSPENDED = Standing(reason="Suspended", message="no trial is started (spec.suspend)")
QUEUED = Standing(reason="Queued", message="it waits for others to end: as many run as the operator runs at once")
NOTHING = Totals(
    trials=0,
    judged=0,
    controls=0,
    verdicts=(),
    set_apart=0,
    kills_planned=0,
    kills_confirmed=0,
    effects_ordered=0,
    effects_witnessed=0,
    effects_duplicate=0,
    effects_lost=0,
    retries=0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdictless:
    """Why an experiment ends without having been run, or run to its end."""

    reason: str
    """One word in CamelCase."""
    message: str
    accepted: bool = True

    @property
    def standing(self) -> Standing:
        return Standing(reason=self.reason, message=self.message, accepted=self.accepted, stalled=True)


def without_run(subject: Subject, *, journal: str = "", created_ms: int, seed: int = 0) -> ExperimentSummary:
    """The summary of an experiment of which nothing was run."""
    provenance = Provenance(
        killpoint=__version__,
        substrate="kubernetes",
        seed=seed,
        started_ms=created_ms,
        ended_ms=None,
        versions=(),
        platform=(),
        command=command_for(subject),
        replay=replay_for(subject),
    )
    return ExperimentSummary(
        name=subject.name,
        journal=journal,
        result=None,
        reasons=(),
        workflow="",
        cells=(),
        totals=NOTHING,
        provenance=provenance,
    )


def ended_by(why: Verdictless, summary: ExperimentSummary, *, now_ms: int) -> ExperimentSummary:
    """The same summary at an end that is no result: what was seen until then stays in it."""
    return replace(
        summary,
        result=Result.ERROR,
        reasons=(why.message, *summary.reasons),
        provenance=replace(summary.provenance, ended_ms=summary.provenance.ended_ms or now_ms),
    )


def status_document(
    summary: ExperimentSummary, *, generation: int, standing: Standing | None = None, report: Report | None = None
) -> Document:
    """The status as JSON."""
    return dict(document_of(status_of(summary, generation=generation, standing=standing, report=report)))


FIGURES = (
    "startTime",
    "progress",
    "trials",
    "kills",
    "effects",
    "failures",
    "failuresLeftOut",
    "cells",
    "cellsLeftOut",
    "report",
    "journalID",
    "provenance",
)
"""What a status says of the run itself."""
COUNTING = frozenset({"Complete", "FaultConfirmed", "Passed"})
"""Conditions whose messages say, until the end, how much of the run has been seen."""


def carried(status: Document, before: Mapping[str, Any] | None) -> Document:
    """A status that was made without a look at the run, with the figures of the one before it."""
    known = before or {}
    figures = {name: known[name] for name in FIGURES if name in known}
    figures["conditions"] = _with_counts(status, known)
    phase = {} if status["phase"] == "Complete" or "phase" not in known else {"phase": known["phase"]}
    return fitted({**status, **figures, **phase})


def _with_counts(status: Mapping[str, Any], before: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The conditions, those whose messages count trials, cells and kills with the ones of before."""
    said = {found["type"]: found["message"] for found in before.get("conditions") or () if found.get("message")}
    counting = {"Complete", "FaultConfirmed"} if status["phase"] == "Complete" else COUNTING
    return [
        {**condition, "message": said[condition["type"]]}
        if condition["type"] in counting and condition["type"] in said
        else condition
        for condition in status["conditions"]
    ]


def command_for(subject: Subject) -> str:
    """What runs the experiment again, beside the one that is there: its results and its evidence stay."""
    get = f"kubectl --namespace={subject.namespace} get crashexperiment {subject.name} --output=yaml"
    anew = rf"s/^  name: .*/  name: {subject.name}-again/; /^  (abort|suspend|resourceVersion|uid): /d"
    return f"{get} | sed -E '{anew}' | kubectl create --filename=-"


def replay_for(subject: Subject) -> str:
    """What runs one of its trials again, on the machine of whoever asks; without the trial's id."""
    return f"killpoint replay --cluster --namespace {subject.namespace} {subject.name}"


def with_times(status: Document, before: Mapping[str, Any] | None, *, now_ms: int) -> Document:
    """The status with each condition's time of transition: that of before while its status is the same."""
    known = {found.get("type"): found for found in (before or {}).get("conditions") or ()}

    def timed(condition: Mapping[str, Any]) -> Mapping[str, Any]:
        former = known.get(condition["type"])
        if former is None:
            return condition
        same = former.get("status") == condition["status"] and former.get("lastTransitionTime")
        return {**condition, "lastTransitionTime": former["lastTransitionTime"] if same else time_of(now_ms)}

    return {**status, "conditions": [timed(condition) for condition in status["conditions"]]}


def told(status: Mapping[str, Any] | None) -> tuple[str, str]:
    """Where a status says that the experiment stands: reason and message of Complete; empty where it says nothing."""
    for condition in (status or {}).get("conditions") or ():
        if condition.get("type") == "Complete":
            return str(condition.get("reason", "")), str(condition.get("message", ""))
    return "", ""

"""The conditions of an experiment's status. Pure.

``Complete`` is true at every end, so that one ``kubectl wait --for=condition=Complete`` never hangs; ``Passed`` says
which end it was; ``Reconciling`` and ``Stalled`` are what kstatus looks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from killpoint.api.v1alpha1.status import Condition, Known
from killpoint.model.findings import Result
from killpoint.model.lines import one_line
from killpoint.model.summary import ExperimentSummary

Type = Literal["Accepted", "Complete", "Passed", "Reconciling", "Stalled", "FaultConfirmed"]
MESSAGE_CHARACTERS_MAX = 2048
NOTHING_IN_THE_WAY = "nothing stands in its way"

REASONS = {
    Result.PASS: "AsExpected",
    Result.FAIL: "NotAsExpected",
    Result.INCONCLUSIVE: "Inconclusive",
    Result.ERROR: "CouldNotExecute",
}
"""The result as the reason of a condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where an experiment stands, as far as its summary does not show it: it waits, or it could not be run."""

    reason: str
    """One word in CamelCase, the reason of every condition that it bears on."""
    message: str
    accepted: bool = True
    stalled: bool = False
    """Whether it does not get on, and somebody has to do something about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """A condition without its times."""

    type: Type
    status: Known
    reason: str
    message: str = ""


def conditions_of(
    summary: ExperimentSummary,
    *,
    generation: int | None,
    started: str,
    ended: str | None,
    standing: Standing | None = None,
) -> tuple[Condition, ...]:
    """All conditions. Those that an end sets changed at the end, all others at the start."""
    return tuple(
        Condition(
            type=said.type,
            status=said.status,
            reason=said.reason,
            message=one_line(said.message)[:MESSAGE_CHARACTERS_MAX],
            observed_generation=generation,
            last_transition_time=started if said.type == "Accepted" else ended or started,
        )
        for said in _said(summary, standing)
    )


def _said(summary: ExperimentSummary, standing: Standing | None) -> Iterator[_Said]:
    result, running = summary.result, summary.result is None
    progress = f"{summary.totals.judged} of {summary.totals.trials} trials judged"
    reason = standing.reason if standing else _reason(summary)
    why = standing.message if standing else _why(summary, progress)
    stalled = result is Result.ERROR or (standing is not None and standing.stalled)
    yield _accepted(standing)
    yield _Said(type="Complete", status=_known(not running), reason=reason, message=progress)
    yield _Said(type="Passed", status=_passed(result), reason=reason, message=_so_far(summary) if running else why)
    going_on = running and not stalled
    yield _Said(type="Reconciling", status=_known(going_on), reason=reason, message=why if standing else progress)
    in_the_way = why if standing or stalled else NOTHING_IN_THE_WAY
    yield _Said(type="Stalled", status=_known(stalled), reason=reason, message=in_the_way)
    yield _faults(summary)


def _accepted(standing: Standing | None) -> _Said:
    if standing is None or standing.accepted:
        return _Said(type="Accepted", status="True", reason="Valid", message="the specification is valid")
    return _Said(type="Accepted", status="False", reason=standing.reason, message=standing.message)


def _why(summary: ExperimentSummary, progress: str) -> str:
    """Why it came out as it did: the first reason, and how many more there are."""
    if not summary.reasons:
        return f"{_cells(len(summary.cells))} as expected; {progress}"
    first, more = summary.reasons[0], len(summary.reasons) - 1
    return f"{first} ({more} more in status.reasons)" if more else first


def _so_far(summary: ExperimentSummary) -> str:
    """What can be said before the end: a cell that is not as expected stays so."""
    unmet = sum(cell.met is False for cell in summary.cells)
    return f"not known before the end; {_cells(unmet)} not as expected so far" if unmet else "not known before the end"


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


def _reason(summary: ExperimentSummary) -> str:
    if summary.result is None:
        return "Running"
    return "Aborted" if summary.aborted else REASONS[summary.result]


def _passed(result: Result | None) -> Known:
    if result is Result.PASS:
        return "True"
    return "False" if result is Result.FAIL else "Unknown"


def _faults(summary: ExperimentSummary) -> _Said:
    """Whether every kill that was planned is proven. Where none was planned, nothing is."""
    planned, confirmed = summary.totals.kills_planned, summary.totals.kills_confirmed
    message = f"{confirmed} of {planned} kills confirmed"
    if summary.result is Result.ERROR:
        return _Said(type="FaultConfirmed", status="Unknown", reason=REASONS[Result.ERROR], message=message)
    if summary.result is None:
        # Cells at "*" have yet to be unfolded: that none of the kills known by now is missing says nothing.
        return _Said(type="FaultConfirmed", status="Unknown", reason="Running", message=message)
    if not planned:
        return _Said(type="FaultConfirmed", status="Unknown", reason="NoKills", message=message)
    if confirmed >= planned:
        return _Said(type="FaultConfirmed", status="True", reason="AllConfirmed", message=message)
    missing = "Aborted" if summary.aborted else "KillsMissing"
    return _Said(type="FaultConfirmed", status="False", reason=missing, message=message)


def _known(holds: bool) -> Known:  # noqa: FBT001 - the only argument is the truth value itself
    return "True" if holds else "False"

"""The status: what is known of an experiment, in at most 100 KiB whatever its size."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from killpoint.api.v1alpha1 import base
from killpoint.model.findings import Result, Verdict

BYTES_MAX = 100 * 1024
"""Of the whole status as JSON, in whatever way that is written."""
REASON_CHARACTERS_MAX = 512
REASONS_MAX = 10
CELL_REASONS_MAX = 3
FAILURES_MAX = 10
CELLS_MAX = 500

Count = Annotated[int, Field(ge=0)]
Name = Annotated[str, StringConstraints(max_length=512)]
Reason = Annotated[str, StringConstraints(max_length=REASON_CHARACTERS_MAX)]
Time = Annotated[str, StringConstraints(max_length=64)]
Known = Literal["True", "False", "Unknown"]
"""Three-valued, as the status of a condition is."""
Counts = Annotated[dict[str, Count], Field(max_length=16)]
Words = Annotated[dict[str, Name], Field(max_length=32)]


Phase = Literal["Pending", "Running", "Complete"]


class Model(base.Model):
    """Statuses are made here, by field name; only specifications come from outside."""

    model_config = ConfigDict(validate_by_name=True)


class Condition(Model):
    """A condition, as Kubernetes' metav1.Condition."""

    type: Literal["Accepted", "Complete", "Passed", "Reconciling", "Stalled", "FaultConfirmed"]
    """What it is about."""
    status: Known
    """Whether it holds."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    """Why, in one word."""
    message: Annotated[str, StringConstraints(max_length=2048)] = ""
    """Why, in words."""
    observed_generation: Count | None = None
    """The generation of the specification that it is about."""
    last_transition_time: Time
    """When its status last changed."""


class Trials(Model):
    """How many trials there are, and what became of them."""

    planned: Count
    """In all cells, controls included."""
    judged: Count
    """That have a verdict."""
    controls: Count
    """Of controls."""
    set_apart: Count
    """Left out of the counts as the framework's own failure."""
    retries: Count
    """Takes that infrastructure spoiled and that were run again."""
    verdicts: Counts
    """Verdict → trials that have it, those set apart not counted."""


class Kills(Model):
    """Kills that were to happen, and those that did."""

    planned: Count
    """That the trials were to have."""
    confirmed: Count
    """That are proven."""


class Effects(Model):
    """Effects outside, as the ledger shows them."""

    ordered: Count
    """That were ordered."""
    witnessed: Count
    """That happened."""
    duplicate: Count
    """That happened though the operation had happened before."""
    lost: Count
    """That a finished run owes."""


class Histogram(Model):
    """How many trials of a cell had how many effects of an action."""

    action: Name
    """The action."""
    count: Count
    """Effects in one trial."""
    trials: Count
    """Trials with so many."""


class ExpectedStatus(Model):
    """What is expected of a cell."""

    source: Name
    """The rule's path, or built-in."""
    verdicts: Annotated[tuple[Verdict, ...], Field(max_length=9)]
    """The verdicts allowed."""
    effects: Counts
    """Action → effects in each trial."""


class Times(Model):
    """Medians over the trials of a cell, in milliseconds. Absent: not known."""

    normal: Count | None = None
    """An attempt of its control, from start to end."""
    recovery: Count | None = None
    """The last attempt of a killed trial, likewise."""
    checkpoint: Count | None = None
    """What an attempt spent on writing checkpoints."""


class RateStatus(Model):
    """How many of the counted trials had a verdict, and between which parts the true one lies, at 95 %."""

    verdict: Verdict
    """The verdict."""
    count: Count
    """Trials that had it."""
    of: Count
    """Trials counted."""
    low: float
    """The smallest part that agrees with it."""
    high: float
    """The largest part."""


class CellStatus(Model):
    """What a cell showed."""

    id: Name
    """Its id, which depends on its coordinates alone."""
    coordinates: Words
    """Axis → word."""
    control: bool
    """Whether nothing was killed."""
    met: Known
    """Whether it is as expected."""
    trials: Count
    """Planned."""
    judged: Count
    """That have a verdict."""
    set_apart: Count
    """Left out of the counts as the framework's own failure."""
    verdicts: Counts
    """Verdict → trials that have it."""
    effects: Annotated[tuple[Histogram, ...], Field(max_length=64)]
    """Trials by number of effects."""
    expected: ExpectedStatus
    """The rule that holds."""
    rates: Annotated[tuple[RateStatus, ...], Field(max_length=9)] = ()
    """Verdicts as parts of the trials."""
    milliseconds: Times = Times()
    """How long it took."""
    reasons: Annotated[tuple[Reason, ...], Field(max_length=CELL_REASONS_MAX)] = ()
    """Why it is not as expected, or not known; the last one says how many more there are."""


class LeftOut(Model):
    """Cells that there is no room for. They are all in the report."""

    cells: Count = 0
    """How many."""
    unmet: Count = 0
    """How many of these are not as expected."""
    unknown: Count = 0
    """How many of these are not known."""
    trials: Count = 0
    """How many trials they have."""


class Failure(Model):
    """A trial that is not as expected, as an example."""

    trial: Name
    """Its id."""
    cell: Name
    """Its cell's id."""
    verdict: Verdict
    """Its verdict."""
    reason: Reason
    """Its worst finding."""
    replay: Name
    """The command that runs it again, or why there is none."""


class Report(Model):
    """Where the whole result is."""

    location: Name
    """A path or an address."""
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$", max_length=64)]
    """Its digest."""


class ProvenanceStatus(Model):
    """Where the numbers come from."""

    killpoint: Name
    """killpoint's version."""
    substrate: Name
    """Where attempts ran."""
    seed: Count
    """What everything random was drawn from."""
    versions: Annotated[dict[str, Words], Field(max_length=32)]
    """Setup → distribution → version."""
    platform: Words
    """Of the machine: name → value."""
    command: Annotated[str, StringConstraints(max_length=2048)]
    """What runs the experiment again."""


class Status(Model):
    """What is known of an experiment."""

    observed_generation: Count | None = None
    """The generation of the specification that this is about."""
    phase: Phase
    """Where it is; derived from the conditions."""
    result: Result | None = None
    """The word for it. Absent while it runs."""
    reasons: Annotated[tuple[Reason, ...], Field(max_length=REASONS_MAX)] = ()
    """Why, worst first; the last one says how many more there are."""
    conditions: Annotated[tuple[Condition, ...], Field(max_length=8)]
    """Accepted, Complete, Passed, Reconciling, Stalled, FaultConfirmed."""
    start_time: Time
    """When it began."""
    completion_time: Time | None = None
    """When it ended."""
    progress: Annotated[str, StringConstraints(max_length=32)]
    """Trials judged, of trials planned: 37/192."""
    trials: Trials
    """Trials."""
    kills: Kills
    """Kills."""
    effects: Effects
    """Effects outside."""
    failures: Annotated[tuple[Failure, ...], Field(max_length=FAILURES_MAX)] = ()
    """Examples of trials that are not as expected, the worst first."""
    failures_left_out: Count = 0
    """How many more of these there are."""
    cells: Annotated[tuple[CellStatus, ...], Field(max_length=CELLS_MAX)] = ()
    """What each cell showed, the worst first."""
    cells_left_out: LeftOut = LeftOut()
    """Cells that there is no room for."""
    report: Report | None = None
    """Where the whole result is."""
    # Kubernetes writes initialisms in capitals.
    journal_id: Annotated[str, StringConstraints(max_length=253)] | None = Field(default=None, alias="journalID")
    """The journal that holds every event of the run. Absent while none is opened."""
    provenance: ProvenanceStatus
    """Where the numbers come from."""

"""The matrix: its axes and their values. An axis is named in the singular, as the coordinate of a cell is."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from killpoint.api.v1alpha1.base import Key, KilledAt, KillMethod, KillName, Model, Parameters, Resume, Store, Word

Milliseconds = Annotated[int, Field(ge=0, le=60_000)]
Names = Annotated[tuple[Word, ...], Field(max_length=16)]


class Kill(Model):
    """Where and how the attempts of a trial are killed."""

    at: Annotated[tuple[KilledAt, ...], Field(min_length=1, max_length=6)]
    """The point at which attempt 1 is killed, then attempt 2, and so on. charge.after#2 is its second passing; "*", in
    the first place, stands for every point that a control run passed."""
    method: KillMethod = "sigkill"
    """How it is killed."""
    name: KillName | None = None
    """The cell's word for it: the points, joined by +, unless given."""


class Delivery(Model):
    """How the job reaches its executors."""

    name: Word | None = None
    """The cell's word for it: the mode, unless given."""
    mode: Literal["once", "redelivered", "resubmitted", "concurrent", "while-waiting", "overdue"]
    """once; redelivered after it was done; resubmitted as a new run of the same order; to concurrent executors; again
    while the run waits for an answer; again because it is overdue, with the first executor still alive."""
    executors: Annotated[int, Field(ge=1, le=8)] = 1
    """How many executors get it."""
    jitter_milliseconds: Milliseconds = 0
    """The largest random delay between them."""
    barrier: bool = True
    """Whether concurrent executors wait for each other, so that they do overlap."""


class Response(Model):
    """What becomes of the external system's answer."""

    name: Word | None = None
    """The cell's word for it: when and do, unless given."""
    when: Literal["before", "after", "pending"] = "after"
    """Before the effect is committed, after it, or while it is pending."""
    do: Literal["none", "drop", "error", "unavailable", "delay"]
    """What happens to the answer."""
    times: Annotated[int, Field(ge=1, le=100)] = 1
    """How many answers are hit."""


class Guard(Model):
    """A named set of the application's own protections. Each is a factor of its own."""

    name: Word
    """The cell's word for it."""
    mechanisms: Annotated[
        tuple[Literal["task-record", "lease", "outbox", "backoff", "dead-letter", "reconcile"], ...],
        Field(max_length=6),
    ] = ()
    """Those that are on."""


class Target(Model):
    """What the external system offers."""

    name: Word
    """The cell's word for it."""
    dedup: bool = True
    """Whether it honours idempotency keys."""
    lookup: bool = True
    """Whether an effect can be asked for."""
    fencing: bool = False
    """Whether it refuses stale fencing tokens."""


class Approval(Model):
    """A human decision that the run waits for."""

    name: Word | None = None
    """The cell's word for it: the decision, unless given."""
    decision: Literal["granted", "refused", "expired", "revoked"]
    """What is decided."""
    changed: Literal["none", "order", "amount", "action", "policy"] = "none"
    """What is changed behind the decision's back."""
    at: Literal["before-decision", "after-decision"] = "after-decision"
    """When it is changed."""
    delivery: Literal["once", "twice", "concurrent"] = "once"
    """How the decision is delivered."""
    placement: Literal["own-step", "in-step"] = "own-step"
    """Whether the wait is a step of its own or in the step with the effect."""


class Version(Model):
    """A change of the program between the first attempt and its resume."""

    name: Word | None = None
    """The cell's word for it: the change, unless given."""
    change: Literal[
        "none", "rename-step", "remove-step", "rename-key", "schema", "tool-contract", "authorization", "output-format"
    ]
    """What differs in the new version."""
    policy: Literal["original", "migrate", "reject", "revalidate", "retain"] = "original"
    """What is done with a run that was started on the old one."""


class Axes(Model):
    """Values to combine, axis by axis."""

    setup: Annotated[tuple[Word, ...], Field(max_length=16)] = ()
    """Worker programs: langgraph, llamaindex, llamaindex-dbos, crewai-persist, crewai-checkpoint, or one of workers."""
    store: Annotated[tuple[Store, ...], Field(max_length=3)] = ()
    """Where the framework keeps its state: shared (postgres), in files that survive the attempt (volume) or in files
    that die with it (pod)."""
    key: Annotated[tuple[Key, ...], Field(max_length=7)] = ()
    """The idempotency key: none; fresh in each execution of the step; stable, saved by an earlier step; derived from
    the job; one per order; one for the whole run (run-scoped); random, saved by an earlier step (saved-random)."""
    kill: Annotated[tuple[Kill, ...], Field(max_length=32)] = ()
    """Where the attempts are killed. A control, with no kill, is run for each combination of the other axes."""
    resume: Annotated[tuple[Resume, ...], Field(max_length=3)] = ()
    """How a resume is asked for: the framework's own way (continue), the input sent again (resend), or from an
    earlier checkpoint (fork)."""
    delivery: Annotated[tuple[Delivery, ...], Field(max_length=8)] = ()
    """How the job reaches its executors."""
    response: Annotated[tuple[Response, ...], Field(max_length=8)] = ()
    """What becomes of the external system's answer."""
    guard: Annotated[tuple[Guard, ...], Field(max_length=16)] = ()
    """Sets of the application's own protections."""
    target: Annotated[tuple[Target, ...], Field(max_length=8)] = ()
    """What the external system offers."""
    approval: Annotated[tuple[Approval, ...], Field(max_length=16)] = ()
    """Human decisions."""
    version: Annotated[tuple[Version, ...], Field(max_length=16)] = ()
    """Changes of the program before the resume."""
    parameters: Parameters = Field(default={})
    """Further axes by name, which only the worker interprets: durability: [sync, async, exit]. Dropped for a setup
    that lacks it."""


class Include(Axes):
    """A further matrix. An axis that it does not name has the values of the main one."""


class Selector(Model):
    """Cells by their words: one of the words on each axis named."""

    setup: Names = ()
    """Setups."""
    store: Annotated[tuple[Store, ...], Field(max_length=3)] = ()
    """Stores."""
    key: Annotated[tuple[Key, ...], Field(max_length=7)] = ()
    """Keys."""
    kill: Annotated[tuple[KillName, ...], Field(max_length=32)] = ()
    """Kills, by name: the points joined by + unless the kill has another."""
    resume: Annotated[tuple[Resume, ...], Field(max_length=3)] = ()
    """Resumes."""
    delivery: Names = ()
    """Deliveries, by name."""
    response: Names = ()
    """Responses, by name."""
    guard: Names = ()
    """Guards, by name."""
    target: Names = ()
    """Targets, by name."""
    approval: Names = ()
    """Approvals, by name."""
    version: Names = ()
    """Versions, by name."""
    parameters: Parameters = Field(default={})
    """Parameters by name. A cell that lacks it is not meant."""


class Exclude(Selector):
    """Cells of the matrix that are not run. Cells of include are not touched."""


class Matrix(Axes):
    """The cells: every combination of the axes' values, less exclude, plus include."""

    setup: Annotated[tuple[Word, ...], Field(min_length=1, max_length=16)]
    """Worker programs: langgraph, llamaindex, llamaindex-dbos, crewai-persist, crewai-checkpoint, or one of workers."""
    store: Annotated[tuple[Store, ...], Field(min_length=1, max_length=3)] = ("postgres",)
    """Where the framework keeps its state: shared (postgres), in files that survive the attempt (volume) or in files
    that die with it (pod)."""
    key: Annotated[tuple[Key, ...], Field(min_length=1, max_length=7)] = ("stable",)
    """The idempotency key: none; fresh in each execution of the step; stable, saved by an earlier step; derived from
    the job; one per order; one for the whole run (run-scoped); random, saved by an earlier step (saved-random)."""
    resume: Annotated[tuple[Resume, ...], Field(min_length=1, max_length=3)] = ("continue",)
    """How a resume is asked for: the framework's own way (continue), the input sent again (resend), or from an
    earlier checkpoint (fork)."""
    include: Annotated[tuple[Include, ...], Field(max_length=16)] = ()
    """Further combinations."""
    exclude: Annotated[tuple[Exclude, ...], Field(max_length=16)] = ()
    """Combinations that are left out."""

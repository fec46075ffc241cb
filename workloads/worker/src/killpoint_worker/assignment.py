"""What an attempt is told: the assignment document, and the addresses beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

CONTRACT = 1
"""The version of the worker contract that this package speaks."""

DEFAULT_TERMINATION_LOG = "/dev/termination-log"

Action = Literal["start", "resume", "describe", "inspect"]
Do = Literal["die", "exit", "out-of-memory", "park", "freeze"]

T = TypeVar("T")


class AssignmentError(ValueError):
    """The assignment, or a variable beside it, cannot be read. Says which part, and what is wanted there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions of the workflow's parts, kept with a run and compared when it is resumed."""

    graph: str = "1"
    state: str = "1"
    policy: str = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """What is run, by name."""

    name: str
    versions: Versions = field(default_factory=Versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinates:
    """The cell's place in the matrix, as far as a worker has to know it."""

    setup: str
    store: str
    key: str
    resume: str
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One thing to be paid: ``amount`` in minor units of ``currency``."""

    id: str
    amount: int
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the workflow works on."""

    orders: tuple[Order, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """What to do at the ``occurrence``-th passing of a point in this attempt."""

    point: str
    occurrence: int
    do: Do


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The KILLPOINT_ASSIGNMENT document, contract version 1."""

    experiment: str
    trial: str
    run: str
    tenant: str
    attempt: str
    number: int
    nonce: str
    action: Action
    workflow: Workflow
    coordinates: Coordinates
    job: Job = field(default_factory=Job)
    schedule: tuple[Scheduled, ...] = ()

    @property
    def continues(self) -> bool:
        """Whether the framework is asked to go on by its own means: a resume that does not send the input again."""
        return self.action == "resume" and self.coordinates.resume == "continue"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Assignment:
        """Read KILLPOINT_ASSIGNMENT. Raises AssignmentError."""
        text = (os.environ if environ is None else environ).get("KILLPOINT_ASSIGNMENT")
        if not text:
            raise AssignmentError(
                "KILLPOINT_ASSIGNMENT is not set: a worker is started by killpoint, see docs/worker-contract.md"
            )
        return cls.from_json(text)

    @classmethod
    def from_json(cls, text: str) -> Assignment:
        """Read the document; fields that this version does not know are ignored. Raises AssignmentError."""
        try:
            document = json.loads(text)
        except ValueError as error:
            raise AssignmentError(f"KILLPOINT_ASSIGNMENT is not JSON: {error}") from error
        return _assignment(_Part.of(document, "assignment"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Addresses and secrets of an attempt; each is a variable of its own."""

    payments_url: str | None = None
    database_url: str | None = field(default=None, repr=False)
    volume: Path | None = None
    token: str | None = field(default=None, repr=False)
    control_url: str | None = None
    termination_log: Path = Path(DEFAULT_TERMINATION_LOG)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Environment:
        """Read the KILLPOINT_* variables. An empty one counts as unset."""
        source = os.environ if environ is None else environ
        volume = source.get("KILLPOINT_VOLUME")
        return cls(
            payments_url=source.get("KILLPOINT_PAYMENTS_URL") or None,
            database_url=source.get("KILLPOINT_DATABASE_URL") or None,
            volume=Path(volume) if volume else None,
            token=source.get("KILLPOINT_TOKEN") or None,
            control_url=source.get("KILLPOINT_CONTROL_URL") or None,
            termination_log=Path(source.get("KILLPOINT_TERMINATION_LOG") or DEFAULT_TERMINATION_LOG),
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """A JSON object with its place in the document, so that a complaint can name the place."""

    fields: Mapping[str, Any]
    place: str

    @classmethod
    def of(cls, value: object, place: str) -> _Part:
        if not isinstance(value, dict):
            raise AssignmentError(f"{place} must be an object, not {type(value).__name__}")
        return cls(value, place)

    def part(self, name: str) -> _Part:
        return _Part.of(self.take(name, dict), f"{self.place}.{name}")

    def parts(self, name: str) -> tuple[_Part, ...]:
        items = self.take(name, list, [])
        return tuple(_Part.of(item, f"{self.place}.{name}[{index}]") for index, item in enumerate(items))

    def take(self, name: str, kind: type[T], default: T | None = None) -> T:
        value = self.fields.get(name, default)
        # JSON's true is an int to isinstance, and never a number that is meant here.
        if not isinstance(value, kind) or isinstance(value, bool):
            found = "missing" if value is None else type(value).__name__
            raise AssignmentError(f"{self.place}.{name} must be of type {kind.__name__}, found {found}")
        return value

    def word(self, name: str, allowed: tuple[str, ...]) -> str:
        value = self.take(name, str)
        if value not in allowed:
            raise AssignmentError(f"{self.place}.{name} must be one of {', '.join(allowed)}, found {value!r}")
        return value


def _assignment(part: _Part) -> Assignment:
    contract = part.take("contract", int)
    if contract != CONTRACT:
        raise AssignmentError(
            f"assignment.contract is {contract}, this worker speaks {CONTRACT}: use a matching killpoint-worker"
        )
    return Assignment(
        experiment=part.take("experiment", str),
        trial=part.take("trial", str),
        run=part.take("run", str),
        tenant=part.take("tenant", str),
        attempt=part.take("attempt", str),
        number=part.take("number", int),
        nonce=part.take("nonce", str),
        action=cast("Action", part.word("action", get_args(Action))),
        workflow=_workflow(part.part("workflow")),
        coordinates=_coordinates(part.part("coordinates")),
        job=Job(orders=tuple(_order(order) for order in _orders(part))),
        schedule=tuple(_scheduled(item) for item in part.parts("schedule")),
    )


def _orders(part: _Part) -> tuple[_Part, ...]:
    return part.part("job").parts("orders") if "job" in part.fields else ()


def _workflow(part: _Part) -> Workflow:
    versions = part.part("versions") if "versions" in part.fields else _Part({}, f"{part.place}.versions")
    return Workflow(
        name=part.take("name", str),
        versions=Versions(
            graph=versions.take("graph", str, "1"),
            state=versions.take("state", str, "1"),
            policy=versions.take("policy", str, "1"),
        ),
    )


def _coordinates(part: _Part) -> Coordinates:
    parameters = _Part.of(part.fields.get("parameters", {}), f"{part.place}.parameters")
    return Coordinates(
        setup=part.take("setup", str),
        store=part.take("store", str, "postgres"),
        key=part.take("key", str, "stable"),
        resume=part.take("resume", str, "continue"),
        parameters={name: parameters.take(name, str) for name in parameters.fields},
    )


def _order(part: _Part) -> Order:
    return Order(id=part.take("id", str), amount=part.take("amount", int), currency=part.take("currency", str))


def _scheduled(part: _Part) -> Scheduled:
    return Scheduled(
        point=part.take("point", str),
        occurrence=part.take("occurrence", int, 1),
        do=cast("Do", part.word("do", get_args(Do))),
    )

"""What is left of a document when its mistakes are cut out, so that the rest of it can be looked at as well. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from killpoint.api.document import Json
from killpoint.api.problems import Location, Problem, path_of
from killpoint.api.v1alpha1.spec import API_VERSION, KIND, CrashExperiment
from killpoint.api.wording import errors_in

ROUNDS_MAX = 8
SPEC: Location = ("spec",)
MATRIX: Location = ("spec", "matrix")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """A document without what was cut out of it, and where in the original everything in it was."""

    cut: frozenset[Location]
    originals: dict[Location, Location] = field(default_factory=dict)
    """Location in the rest → location in the original: items of lists have moved up."""

    def of(self, value: Json, *, old: Location = (), new: Location = ()) -> Json:
        """What is left of a value."""
        self.originals[new] = old
        if isinstance(value, dict):
            kept = {name: member for name, member in value.items() if (*old, name) not in self.cut}
            return {name: self.of(member, old=(*old, name), new=(*new, name)) for name, member in kept.items()}
        if isinstance(value, list):
            items = [(number, item) for number, item in enumerate(value) if (*old, number) not in self.cut]
            return [self.of(item, old=(*old, number), new=(*new, place)) for place, (number, item) in enumerate(items)]
        return value

    def original(self, place: Location) -> Location:
        """Where in the original something was, or would have been."""
        known = next(place[:end] for end in range(len(place), -1, -1) if place[:end] in self.originals)
        return self.originals[known] + place[len(known) :]

    def restored(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Problems of the rest as problems of the original, less those that the cuts may have made."""
        moved = ((problem, self.original(_location(problem.path))) for problem in problems)
        touched = {_section(place) for place in self.cut}
        return tuple(
            replace(problem, path=path_of(place)) for problem, place in moved if _section(place) not in touched
        )

    @property
    def setups_are_whole(self) -> bool:
        """Whether nothing is cut out of what other checks stand on: which setups there are."""
        return not any({"setup", "workers"} & set(place) or place[-1] == "include" for place in self.cut)


def salvage(spec: Json, mistakes: Iterable[Location]) -> tuple[CrashExperiment, Rest] | None:
    """Cut out the mistakes, and what is wrong because of the cuts. None where too little is left."""
    whole: Json = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "rest"}, "spec": spec}
    cut = {place for place in mistakes if place[:1] == SPEC}
    for _ in range(ROUNDS_MAX):
        if SPEC in cut:
            return None
        rest = Rest(cut=frozenset(cut))
        try:
            return CrashExperiment.model_validate_json(json.dumps(rest.of(whole))), rest
        except ValidationError as error:
            cut |= {rest.original(place_of(detail)) for detail in errors_in(error)}
    return None


def place_of(error: ErrorDetails) -> Location:
    """What has to be cut out for an error to be gone: the mistake itself, or what lacks a field."""
    location: Location = tuple(error["loc"])
    return location[:-1] if error["type"] == "missing" else location


def _section(location: Location) -> Location:
    """The rule, kill, worker or the like to which a location belongs."""
    return location[: len(MATRIX) + 2] if location[: len(MATRIX)] == MATRIX else location[: len(MATRIX) + 1]


def _location(path: str) -> Location:
    parts = re.findall(r"\[(\d+)\]|([^.\[\]]+)", path)
    return tuple(int(number) if number else name for number, name in parts)

"""Problems: what is wrong with a document, where, and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

Location = tuple[str | int, ...]
"""The way to a value in a document: ("spec", "matrix", "key", 1)."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Position:
    """A place in a text, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake. The message is worded as a Kubernetes API server words it, where it has words for it."""

    path: str
    """``spec.matrix.key[1]``; empty for the document as a whole."""
    message: str
    suggestion: str | None = None
    """What is probably meant, or what to do, as a sentence without a full stop."""
    position: Position | None = None
    """None where the document did not come from a text."""

    def __str__(self) -> str:
        place = f"{self.position.line}:{self.position.column}: " if self.position else ""
        path = f"{self.path}: " if self.path and not self.message.startswith("unknown field") else ""
        return f"{place}{path}{self.message}" + (f"; {self.suggestion}" if self.suggestion else "")


class ProblemsError(ValueError):
    """A document that can't be used, with everything that is wrong with it."""

    def __init__(self, problems: Iterable[Problem], source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        """Where the document comes from: a file's name."""
        super().__init__("\n".join(_at(source, problem) for problem in self.problems))


def _at(source: str, problem: Problem) -> str:
    """As compilers and editors have it: ``file:line:column: what``, or ``file: what`` where there is no place."""
    if not source:
        return str(problem)
    return f"{source}:{problem}" if problem.position else f"{source}: {problem}"


def path_of(location: Location) -> str:
    """A location as people and Kubernetes write it: ``spec.matrix.key[1]``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".")


def located(problems: Iterable[Problem], positions: Mapping[str, Position]) -> tuple[Problem, ...]:
    """The problems with their positions in the text, in the order of the text, each once.

    A path that is not in the text, such as that of a missing field, is shown at what is around it.
    """
    placed = (
        problem if problem.position else replace(problem, position=_position(problem.path, positions))
        for problem in problems
    )
    start = Position(line=1, column=1)
    return tuple(sorted(dict.fromkeys(placed), key=lambda problem: problem.position or start))


def _position(path: str, positions: Mapping[str, Position]) -> Position | None:
    while path and path not in positions:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return positions.get(path)


def quoted(words: Iterable[str]) -> str:
    """``"none", "fresh"``: as Kubernetes lists values."""
    return ", ".join(f'"{word}"' for word in words)


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The word that is probably meant, if one is nearly right."""
    known = {candidate.lower(): candidate for candidate in words}
    spelled = word.lower().replace("_", "-")
    if spelled in known:
        return known[spelled]
    close = difflib.get_close_matches(spelled, known, n=1, cutoff=0.6)
    return known[close[0]] if close else None


def meant(word: str, words: Iterable[str]) -> str | None:
    """The suggestion for a word that is nearly right."""
    near = nearest(word, words)
    return f'did you mean "{near}"?' if near is not None and near != word else None


def unsupported(path: str, value: str, supported: Iterable[str]) -> Problem:
    """A value that is none of those there are."""
    words = tuple(supported)
    message = f'Unsupported value: "{value}": supported values: {quoted(words)}'
    return Problem(path=path, message=message, suggestion=meant(value, words) or "use one of these")


def invalid(path: str, value: object, reason: str, suggestion: str | None = None) -> Problem:
    """A value that has the right type and can't be."""
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return Problem(path=path, message=f"Invalid value: {shown}: {reason}", suggestion=suggestion)


def forbidden(path: str, reason: str, suggestion: str | None = None) -> Problem:
    """Something that may not be there."""
    return Problem(path=path, message=f"Forbidden: {reason}", suggestion=suggestion)


def duplicate(path: str, value: str, suggestion: str | None = None) -> Problem:
    """A value, as JSON, that is there already."""
    return Problem(path=path, message=f"Duplicate value: {value}", suggestion=suggestion)

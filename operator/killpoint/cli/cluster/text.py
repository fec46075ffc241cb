"""Experiments of a cluster as text: one line each, or one of them in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from killpoint.cli.cluster.experiments import Document, condition, is_over, name_of, standing_of, status_of
from killpoint.cli.columns import aligned

Command = Callable[..., str]
"""From words, ``report`` and a name, to the command that leads to the same cluster again."""
HEADINGS = ("EXPERIMENT", "PHASE", "RESULT", "TRIALS", "KILLS", "DUPLICATES", "LOST", "REASON", "STARTED")


def list_text(bodies: Sequence[Document], *, namespace: str, command: Command) -> str:
    """One line an experiment, newest first."""
    if not bodies:
        return f"No experiments in namespace {namespace}. Start with: {command('run', 'FILE')}"
    rows: list[tuple[str, ...]] = [HEADINGS]
    rows += [_row(body) for body in sorted(bodies, key=_created, reverse=True)]
    return aligned(rows)


def one_text(body: Document, *, namespace: str, command: Command) -> str:
    """Where one experiment stands, and why."""
    status = status_of(body)
    lines = [list_text([body], namespace=namespace, command=command)]
    if not status:
        lines.append("No operator has said anything about it yet.")
    lines += _why(body)
    lines += [f"not as expected: trial {one['trial']}, {one['verdict']}: {one['reason']}" for one in _failures(status)]
    report = status.get("report")
    if report is not None:
        lines += ["", f"Results: {command('report', name_of(body))}"]
        lines += [f"Evidence: kubectl get --raw {report['location']}"]
    return "\n".join(lines)


def _why(body: Document) -> Iterator[str]:
    reason, message = standing_of(body)
    if is_over(body):
        reason = str(condition(body, "Complete").get("reason", ""))
        yield from (f"{reason}: {one}" for one in status_of(body).get("reasons") or ())
    elif reason:
        yield f"{reason}: {message}" if message else reason


def _failures(status: Document) -> Sequence[Document]:
    found: Sequence[Document] = status.get("failures") or ()
    return found


def _row(body: Document) -> tuple[str, ...]:
    status = status_of(body)
    kills, effects = status.get("kills") or {}, status.get("effects") or {}
    return (
        name_of(body),
        str(status.get("phase") or "-"),
        str(status.get("result") or "-"),
        str(status.get("progress") or "-"),
        f"{kills['confirmed']}/{kills['planned']}" if kills else "-",
        str(effects.get("duplicate", "-")),
        str(effects.get("lost", "-")),
        str(condition(body, "Complete").get("reason") or "-"),
        _time(str(status.get("startTime") or "")),
    )


def _time(text: str) -> str:
    return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M:%S UTC") if text else "-"


def _created(body: Document) -> str:
    return str(body["metadata"].get("creationTimestamp", ""))

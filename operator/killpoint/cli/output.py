"""Output: a summary in the form that was asked for."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path

import yaml

from killpoint.api.status import status_of
from killpoint.cli.exits import Exit, Stop
from killpoint.model.summary import ExperimentSummary
from killpoint.report import html, junit, markdown, terminal


class Format(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    HTML = "html"


def rendered(summary: ExperimentSummary, form: Format, *, color: bool = False, width: int = 80) -> str:
    """A summary as text. JSON and YAML are the status of a CrashExperiment."""
    match form:
        case Format.TABLE:
            return terminal.render(summary, color=color, width=width)
        case Format.JSON:
            return json.dumps(_status(summary), indent=2)
        case Format.YAML:
            return yaml.safe_dump(_status(summary), sort_keys=False, allow_unicode=True)
        case Format.JUNIT:
            return junit.render(summary)
        case Format.MARKDOWN:
            return markdown.render(summary)
        case Format.HTML:
            return html.render(summary)


def _status(summary: ExperimentSummary) -> object:
    return status_of(summary).model_dump(mode="json", by_alias=True, exclude_none=True)


def check_writable(path: Path | None) -> None:
    """See, before a long run, that a file can be written at its end. Raises Stop."""
    if path is None:
        return
    folder = path.parent
    if not folder.is_dir():
        raise Stop(Exit.INVALID, f"--report {path}: there is no folder {folder}; make it, or name another file")
    if not os.access(path if path.exists() else folder, os.W_OK) or path.is_dir():
        raise Stop(Exit.INVALID, f"--report {path}: it cannot be written; name another file")


def write(path: Path, text: str, again: str) -> None:
    """Write a file that was asked for. Raises Stop with what to do about it. ``again``: the command for that."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise Stop(
            Exit.NOT_EXECUTED,
            f"{path} cannot be written: {reason}. The evidence is kept: `{again}` writes it again.",
        ) from error

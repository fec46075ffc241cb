"""Reads the documents that ``Context.to_dict()`` gives, format version 2, without the framework. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 2
"""The ``version`` that llama-index-workflows 2.26 writes."""


class SnapshotFormatError(ValueError):
    """The document is of a format that this module does not know: it says nothing rather than something wrong."""


def effect_in(document: Mapping[str, Any]) -> str | None:
    """The charge's id in the state store, or None where no charge has returned."""
    _require_format(document)
    state = json.loads(document["state"]["state_data"]) if document.get("state") else {}
    effect = state.get("value", {}).get("effect")
    return effect if isinstance(effect, str) else None


def has_charged(document: Mapping[str, Any]) -> bool:
    """Whether a resume from here would not run ``charge`` again: its result is in, and no run of it is pending."""
    return effect_in(document) is not None and not _pending(document, "charge")


def is_finished(document: Mapping[str, Any]) -> bool:
    """Whether the run had ended when the snapshot was taken."""
    _require_format(document)
    return not document["is_running"]


def _pending(document: Mapping[str, Any], step: str) -> bool:
    worker = document["workers"].get(step, {})
    return bool(worker.get("queue") or worker.get("in_progress"))


def _require_format(document: Mapping[str, Any]) -> None:
    if document.get("version") != FORMAT:
        raise SnapshotFormatError(f"snapshot format {document.get('version')!r}, this worker reads {FORMAT}")

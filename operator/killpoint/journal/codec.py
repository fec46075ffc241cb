"""Codec: events as JSON documents, validated on the way out and on the way in."""

from __future__ import annotations

from typing import get_args

from pydantic import TypeAdapter, ValidationError

from killpoint.model.events import Event

_ADAPTERS: dict[str, TypeAdapter[Event]] = {kind.__name__: TypeAdapter(kind) for kind in get_args(Event)}


class CodecError(ValueError):
    """A document that this version of killpoint does not understand; says which and why."""


def encode(event: Event) -> tuple[str, str]:
    """An event's kind and its JSON document. Whatever is written can be read back: it is tried here."""
    kind = type(event).__name__
    document = _ADAPTERS[kind].dump_json(event, exclude_defaults=True).decode()
    if decode(kind, document) != event:
        raise CodecError(f"{kind} does not survive being written: {document[:200]}")
    return kind, document


def decode(kind: str, document: str) -> Event:
    """The event behind a kind and a document. Raises CodecError."""
    adapter = _ADAPTERS.get(kind)
    if adapter is None:
        raise CodecError(
            f"the journal holds an event of the kind {kind!r}; it was written by another version of killpoint"
        )
    try:
        return adapter.validate_json(document)
    except ValidationError as error:
        raise CodecError(f"the journal holds a {kind} that cannot be read: {error}") from error

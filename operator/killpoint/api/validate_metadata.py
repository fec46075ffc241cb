"""What is wrong with an object's metadata that its types do not show. Pure, and in Kubernetes' own words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from killpoint.api.problems import Problem, invalid
from killpoint.api.v1alpha1.spec import SUBDOMAIN, Metadata

NAME_PART = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
NAME_PART_CHARACTERS_MAX = 63
PREFIX_CHARACTERS_MAX = 253
CHARACTERS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{NAME_PART}')"
)


def metadata_problems(metadata: Metadata) -> Iterator[Problem]:
    """Keys that are no names."""
    for field in ("labels", "annotations"):
        for key in getattr(metadata, field):
            # Kubernetes compares annotations' keys without regard to case.
            reason = _key_problem(key.lower() if field == "annotations" else key)
            if reason is not None:
                yield invalid(f"metadata.{field}", key, reason)


def _key_problem(key: str) -> str | None:
    """What is wrong with a qualified name: a name, and before it perhaps a domain and a slash."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return (
            f"a qualified name {CHARACTERS} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
    if not name:
        return "name part must be non-empty"
    if len(name) > NAME_PART_CHARACTERS_MAX:
        return f"name part must be no more than {NAME_PART_CHARACTERS_MAX} characters"
    if not re.fullmatch(NAME_PART, name):
        return f"name part {CHARACTERS}"
    if slash and (len(prefix) > PREFIX_CHARACTERS_MAX or not re.fullmatch(SUBDOMAIN, prefix)):
        return "prefix part must be a lowercase RFC 1123 subdomain"
    return None

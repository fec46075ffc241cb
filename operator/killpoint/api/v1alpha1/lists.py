"""What the lists of a specification are: maps, sets, or sequences."""

from __future__ import annotations

from collections.abc import Mapping

MAP_KEYS: Mapping[str, str] = {"workers": "setup", "services": "name", "env": "name", "imagePullSecrets": "name"}
"""Lists in which each item has a name of its own, and the field that holds it."""
ORDERED = frozenset({"at", "command"})
"""Lists of words in which one may stand twice. All other lists of words are sets."""

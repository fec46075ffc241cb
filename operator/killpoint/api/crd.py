"""The CustomResourceDefinition, made from the models and the rules. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from killpoint.api.rules import rules
from killpoint.api.structural import Lists, Structural, structural
from killpoint.api.v1alpha1.lists import MAP_KEYS, ORDERED
from killpoint.api.v1alpha1.spec import API_VERSION, KIND, CrashExperiment, Spec
from killpoint.api.v1alpha1.status import Status

GROUP, _, VERSION = API_VERSION.partition("/")
PLURAL = "crashexperiments"
NAME = f"{PLURAL}.{GROUP}"
HEAD = "# Made by `python -m killpoint.api.generate` from operator/killpoint/api. Do not edit.\n"

SPEC_LISTS = Lists(keys=MAP_KEYS, ordered=ORDERED, sets=True)
# Atomic cells: as a map, the server would note for each field who owns it, which doubles the object.
STATUS_LISTS = Lists(keys={"conditions": "type"}, atomic_maps=True)

COLUMNS = (
    ("Phase", "string", ".status.phase", "Pending, Running or Complete"),
    ("Result", "string", ".status.result", "Pass, Fail, Inconclusive or Error"),
    ("Trials", "string", ".status.progress", "Trials judged, of trials planned"),
    ("Kills", "integer", ".status.kills.confirmed", "Kills that are proven"),
    ("Duplicates", "integer", ".status.effects.duplicate", "Effects that happened more than once"),
    ("Lost", "integer", ".status.effects.lost", "Effects that finished runs owe"),
    (
        "Reason",
        "string",
        '.status.conditions[?(@.type=="Complete")].reason',
        "What it is at, or how it ended, in one word",
    ),
    ("Age", "date", ".metadata.creationTimestamp", "When it was made"),
)
"""What ``kubectl get`` shows: name, type, where it stands, meaning."""


def definition() -> Structural:
    """The CustomResourceDefinition as a document."""
    names = {
        "kind": KIND,
        "listKind": f"{KIND}List",
        "plural": PLURAL,
        "singular": KIND.lower(),
        "shortNames": ["cexp"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [_version()]},
    }


def definition_text() -> str:
    """The same as YAML, for ``kubectl apply``."""
    return HEAD + yaml.safe_dump(definition(), sort_keys=False, width=120, allow_unicode=True)


def _version() -> Structural:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": name, "type": kind, "jsonPath": path, "description": meaning}
            for name, kind, path, meaning in COLUMNS
        ],
        "schema": {"openAPIV3Schema": _schema()},
    }


def _schema() -> Structural:
    fields: Mapping[str, Any] = CrashExperiment.model_json_schema()["properties"]
    return {
        "type": "object",
        "description": CrashExperiment.__doc__,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": fields["apiVersion"]["description"]},
            "kind": {"type": "string", "description": fields["kind"]["description"]},
            "metadata": {"type": "object"},
            "spec": structural(Spec, lists=SPEC_LISTS, rules=rules()),
            "status": structural(Status, lists=STATUS_LISTS),
        },
    }

"""Replays: which trials of a cluster can be run again on a machine, and why the others cannot. Pure."""

from __future__ import annotations

from killpoint.api.available import OFFERS, Where, lacking
from killpoint.api.product import WORD_AXES
from killpoint.api.v1alpha1.matrix import Matrix
from killpoint.api.v1alpha1.spec import Spec
from killpoint.model.cells import Coordinates
from killpoint.model.evidence import TrialEvidence
from killpoint.model.summary import Provenance


def replay_words(provenance: Provenance, evidence: TrialEvidence) -> str:
    """The command that runs a trial again, or the sentence that says why there is none."""
    reason = cluster_only(evidence.coordinates, provenance.own_images)
    return f"{provenance.replay} {evidence.id}" if reason is None else f"no replay on a machine: {reason}"


def cluster_only(place: Coordinates, own_images: tuple[str, ...]) -> str | None:
    """Why a trial can be run in a cluster only; None where a machine will do."""
    if place.setup in own_images:
        return f'"{place.setup}" is an image that the experiment names, and images are run in a cluster only'
    offered = OFFERS[Where.LOCAL].words
    for axis, word in (("store", place.store), ("method", place.kill.method.value)):
        if word not in offered[axis]:
            return lacking(axis, word, Where.LOCAL)
    return None


def own_images_of(spec: Spec) -> tuple[str, ...]:
    """The setups whose workers the experiment brings as images."""
    return tuple(worker.setup for worker in spec.workers if worker.image)


def alone(spec: Spec, place: Coordinates) -> Spec:
    """The specification with nothing but one control: what else it asks for need not be there where it is replayed."""
    axes = {axis: (getattr(place, axis),) for axis in ("setup", *WORD_AXES)}
    matrix = Matrix.model_validate(axes | {"parameters": {name: (value,) for name, value in place.parameters}})
    without = OFFERS[Where.LOCAL].spec_without
    defaults = {name: Spec.model_fields[name].default for name in without}
    workers = tuple(worker for worker in spec.workers if worker.setup == place.setup)
    return spec.model_copy(update={**defaults, "matrix": matrix, "workers": workers, "expect": ()})

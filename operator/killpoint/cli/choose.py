"""Choose: an experiment narrowed to some of its cells, or to one trial for a replay."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from killpoint.api.convert import experiment_of
from killpoint.api.expectations import rules_of
from killpoint.api.load import from_fields
from killpoint.api.replays import alone, cluster_only, own_images_of
from killpoint.api.v1alpha1.spec import CrashExperiment
from killpoint.cli.exits import Exit, Stop
from killpoint.core.plan import control_of
from killpoint.core.summarize import JudgedTrial
from killpoint.journal.archive import Archive
from killpoint.model.catalog import Catalog
from killpoint.model.cells import Cell, Coordinates
from killpoint.model.experiment import Experiment

TRIAL = re.compile(r"^(?P<cell>[0-9a-f]{8})\.(?P<number>[1-9][0-9]{0,4})(r[1-9][0-9]*)?$")


def filtered(experiment: Experiment, filters: Sequence[str]) -> Experiment:
    """The cells that agree with every ``axis=word[,word]``, and their controls. Raises Stop when none is left."""
    if not filters:
        return experiment
    wanted = _wanted(experiment, filters)
    kept = [cell for cell in experiment.cells if not cell.is_control and _agrees(cell, wanted)]
    if not kept:
        raise Stop(Exit.INVALID, f"no cell of {experiment.name} is left by --filter {' --filter '.join(filters)}")
    controls = {control_of(cell).id for cell in kept}
    cells = [cell for cell in experiment.cells if cell.is_control and cell.id in controls] + kept
    return _narrowed(experiment, cells, "\n".join(sorted(filters)))


def _wanted(experiment: Experiment, filters: Sequence[str]) -> Mapping[str, set[str]]:
    known = {axis for cell in experiment.cells for axis in cell.coordinates.words()}
    wanted: dict[str, set[str]] = {}
    for text in filters:
        axis, equals, words = text.partition("=")
        if not equals or axis not in known:
            raise Stop(
                Exit.INVALID,
                f"--filter {text}: expected axis=word or axis=word,word with an axis of: {', '.join(sorted(known))}",
            )
        wanted.setdefault(axis, set()).update(words.split(","))
    return wanted


def _agrees(cell: Cell, wanted: Mapping[str, set[str]]) -> bool:
    words = cell.coordinates.words()
    return all(words.get(axis) in allowed for axis, allowed in wanted.items())


def replayed(archive: Archive, trial: str, catalog: Catalog) -> tuple[CrashExperiment, Experiment]:
    """One trial of a run again on this machine, under its number, with the control of its cell. Raises Stop."""
    number, place = _found(trial, archive.trials)
    stored = from_fields(archive.document)
    reason = cluster_only(place, own_images_of(stored.spec))
    if reason is not None:
        raise Stop(Exit.INVALID, f"trial {trial} cannot be run again on this machine: {reason}")
    document = stored.model_copy(update={"spec": alone(stored.spec, place)})
    experiment = replace(experiment_of(document, catalog), rules=rules_of(stored.spec.expect))
    cell = Cell(coordinates=place, trials=1, first=number)
    control = replace(control_of(cell), first=1)
    cells = [cell] if cell.is_control else [control, cell]
    spec = document.spec.model_copy(update={"expect": stored.spec.expect})  # what is reported of it later, too
    return document.model_copy(update={"spec": spec}), _narrowed(experiment, cells, f"replay {trial}")


def _found(trial: str, known: Sequence[JudgedTrial]) -> tuple[int, Coordinates]:
    """The number of a trial, and its cell's place. Raises Stop."""
    parts = TRIAL.match(trial)
    if parts is None:
        raise Stop(Exit.INVALID, f"{trial!r} is no trial: expected an id from the report, such as 7f31e2c0.3")
    number = int(parts["number"])
    for stored in known:
        if stored.evidence.id.cell == parts["cell"] and stored.evidence.id.number == number:
            return number, stored.evidence.coordinates
    raise Stop(Exit.INVALID, f"the stored run has no trial {trial}; `killpoint report -o json` lists its cells")


def _narrowed(experiment: Experiment, cells: Sequence[Cell], how: str) -> Experiment:
    """A narrowed experiment is another one: it must never go on in the journal of the whole."""
    digest = hashlib.sha256(f"{experiment.digest}\n{how}".encode()).hexdigest()
    return replace(experiment, cells=tuple(cells), digest=digest, narrowed=True)

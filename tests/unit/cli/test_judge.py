"""``killpoint judge``: stored evidence, and the expectations of another file."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from killpoint.cli.app import app, run_command
from killpoint.journal.archive import decode_archive, encode_archive
from tests.unit.cli.memory import Finished

TEXT = """\
apiVersion: killpoint.dev/v1alpha1
kind: CrashExperiment
metadata: {name: sample}
spec:
  matrix: {setup: [langgraph, llamaindex], store: [STORE], key: [none], kill: [{at: [charge.after]}]}
  expect:
  - {where: {key: [none]}, verdict: [duplicate]}
"""
IDLE = "  - {where: {setup: [llamaindex]}, verdict: [duplicate]}\n"


def judged(folder: Path, *, store: str = "postgres", substrate: str = "local", more: str = "") -> int:
    archive = decode_archive(asyncio.run(Finished.of()).evidence, source="it")
    archive = replace(archive, provenance=replace(archive.provenance, substrate=substrate))
    evidence, file = folder / "evidence.json", folder / "expect.yaml"
    evidence.write_bytes(encode_archive(archive))
    file.write_text(TEXT.replace("STORE", store) + more)
    arguments = ["judge", "--expect", str(file), "--evidence", str(evidence)]
    return run_command(lambda: app(arguments, standalone_mode=False))


@pytest.mark.parametrize(
    ("store", "substrate", "code"),
    [("postgres", "local", 0), ("pod", "kubernetes", 0), ("pod", "local", 2), ("volume", "kubernetes", 2)],
)
def test_the_file_has_to_be_one_for_the_place_that_the_evidence_is_from(
    tmp_path: Path, store: str, substrate: str, code: int
) -> None:
    assert judged(tmp_path, store=store, substrate=substrate) == code


def test_expectations_about_cells_that_the_evidence_lacks_keep_it_from_passing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path) == 0
    assert judged(tmp_path, more=IDLE) == 4
    assert "spec.expect[1] is about no cell that was run" in capsys.readouterr().out

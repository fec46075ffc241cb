"""``make env``: the Python that it takes among those there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FAKE = """\
#!/bin/sh
[ "$1" = -c ] || exit 1
exec {python} -c 'import sys; sys.version_info = (3, {minor}, 0); exec(sys.argv[1])' "$2"
"""


@pytest.mark.parametrize(
    ("minors", "chosen"),
    [((14, 12), 12), ((13, 11), 13), ((10, 14, 11), 11), ((10, 14), 14), ((10,), None)],
)
def test_one_that_every_setup_runs_with_goes_before_a_newer_one(
    tmp_path: Path, minors: tuple[int, ...], chosen: int | None
) -> None:
    fakes = {minor: tmp_path / f"python3.{minor}" for minor in minors}
    for minor, path in fakes.items():
        path.write_text(FAKE.format(python=sys.executable, minor=minor))
        path.chmod(0o755)
    venv = tmp_path / "venv"
    command = ["make", f"VENV={venv}", f"PYTHON={' '.join(map(str, fakes.values()))}", f"{venv}/.bootstrapped"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stderr
    expected = "none was found" if chosen is None else f"{fakes[chosen]} could not make {venv}"
    assert expected in said

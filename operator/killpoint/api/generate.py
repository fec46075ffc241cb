"""``python -m killpoint.api.generate [--check]``: write what is made from the models, or say what is out of date."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from killpoint.api.crd import NAME, definition_text
from killpoint.api.reference import experiment_reference, experiment_schema

REPOSITORY = Path(__file__).resolve().parents[3]


def generated() -> Mapping[str, str]:
    """Path in the repository → text."""
    definition = definition_text()
    return {
        f"crds/{NAME}.yaml": definition,
        f"charts/killpoint/files/crds/{NAME}.yaml": definition,  # a chart holds all that it installs
        "docs/reference/experiment.md": experiment_reference(),
        "docs/reference/crashexperiment.schema.json": experiment_schema(),
    }


def stale(repository: Path) -> tuple[str, ...]:
    """The files that are missing or not as the models make them."""
    return tuple(path for path, text in generated().items() if _text(repository / path) != text)


def write(repository: Path) -> tuple[str, ...]:
    """Write the files that are stale, and say which these were."""
    written = stale(repository)
    for path in written:
        file = repository / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(generated()[path], encoding="utf-8")
    return written


def _text(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.is_file() else None


def main(arguments: Sequence[str], repository: Path = REPOSITORY) -> int:
    """The exit code: 0 when all is up to date or was written, 1 when ``--check`` finds stale files, 2 on misuse."""
    if list(arguments) not in ([], ["--check"]):
        sys.stderr.write("usage: python -m killpoint.api.generate [--check]\n")
        return 2
    if not (repository / "pyproject.toml").is_file():
        sys.stderr.write(f"{repository} is no checkout of killpoint: there is nothing to generate\n")
        return 2
    if not arguments:
        sys.stdout.write("".join(f"wrote {path}\n" for path in write(repository)))
        return 0
    files = stale(repository)
    sys.stderr.write("".join(f"{path} is out of date: run python -m killpoint.api.generate\n" for path in files))
    return 1 if files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

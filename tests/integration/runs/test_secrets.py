"""Passwords, keys and tokens stay where they are used: nothing that a run shows or leaves for people holds one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.integration.runs import rig
from tests.integration.runs.rig import Command, Ended, Postgres

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TELLTALE = """#!/bin/sh
# Keeps what it was given, and prints it all; then it ends badly, so that its last words are evidence.
printf '%s\\n%s\\n' "$KILLPOINT_TOKEN" "$KILLPOINT_DATABASE_URL" >"$KILLPOINT_VOLUME/given"
echo "cannot connect to $KILLPOINT_DATABASE_URL with $KILLPOINT_TOKEN" >&2
{action}
"""
OUTRIGHT = """
nonce=$(printf %s "$KILLPOINT_ASSIGNMENT" | sed 's/.*"nonce":"\\([^"]*\\)".*/\\1/')
attempt=$(printf %s "$KILLPOINT_ASSIGNMENT" | sed 's/.*"attempt":"\\([^"]*\\)".*/\\1/')
printf '{"killpoint":1,"attempt":"%s","nonce":"%s"}\\n' "$attempt" "$nonce" >>"$KILLPOINT_TERMINATION_LOG"
printf '{"outcome":"failed","error":{"class":"E","message":"%s %s"}}\\n' "$KILLPOINT_DATABASE_URL" "$KILLPOINT_TOKEN" \\
    >>"$KILLPOINT_TERMINATION_LOG"
exit 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was shown and left of a run, and the secrets that were in use."""

    shown: dict[str, str]
    secrets: dict[str, str] = field(repr=False)


@pytest.fixture(scope="module")
def told(on_dsn: Command, postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("secrets")
    command = Command(home=folder / "home", cache=on_dsn.cache, scratch=folder, further={})
    file = _experiment(folder)
    arguments = ("run", file, "-o", "json", "--keep", "--report", folder / "report.html", "--dsn", postgres.dsn)
    running = command.start(*arguments)
    running.until(lambda: _payments(command), what="payments running")
    secrets = {"the password of the DSN": postgres.password, **_payments(command)}
    ended = running.ended()
    assert ended.code in {1, 4}, ended.err
    run = command.newest_run()
    for given in run.glob("volumes/*/given"):
        token, database = given.read_text().split()
        secrets[f"a token ({given.parent.name})"] = token
        secrets[f"a password ({given.parent.name})"] = urlsplit(database).password or ""
    return Told(shown=_shown(command, ended, run, folder / "report.html"), secrets=secrets)


def _experiment(folder: Path) -> Path:
    scripts = {"tells-at-its-end": "exit 3", "tells-outright": OUTRIGHT}
    for name, action in scripts.items():
        (folder / f"{name}.sh").write_text(TELLTALE.replace("{action}", action))
    return rig.experiment(
        "secrets",
        folder,
        workers=[
            {"setup": name, "command": ["sh", f"{name}.sh"], "points": ["charge.after"], "stores": ["postgres"]}
            for name in scripts
        ],
        matrix={"setup": list(scripts), "key": ["none"], "kill": [{"at": ["charge.after"]}]},
        trials=1,
    )


def _payments(command: Command) -> dict[str, str]:
    """What the payments service was started with."""
    for process in command.processes("killpoint_payments serve"):
        variables = dict(
            line.split("=", 1)
            for line in Path(f"/proc/{process.pid}/environ").read_text().split("\0")
            if line.startswith("KILLPOINT_PAYMENTS_")
        )
        if variables:
            return {
                "the signing key": variables["KILLPOINT_PAYMENTS_SIGNING_KEY"],
                "the admin's token": variables["KILLPOINT_PAYMENTS_ADMIN_TOKEN"],
            }
    return {}


def _shown(command: Command, ended: Ended, run: Path, report: Path) -> dict[str, str]:
    forms = {form: command("report", "secrets", "-o", form).out for form in ("table", "yaml", "junit", "markdown")}
    assert all(forms.values())
    return {
        "stdout": ended.out,
        "stderr": ended.err,
        "run.json": (run / "run.json").read_text(),
        "evidence.json": (run / "evidence.json").read_text(),
        "report.html": report.read_text(),
        "status": command("status").out,
        **forms,
    }


def test_there_were_secrets_to_be_told(told: Told) -> None:
    """Otherwise the next test would pass for nothing: they were found, and the workers' words are in the evidence."""
    assert {name.partition(" (")[0] for name in told.secrets} == {
        "the password of the DSN",
        "the signing key",
        "the admin's token",
        "a token",
        "a password",
    }
    assert all(len(secret) >= 16 for secret in told.secrets.values())
    assert "cannot connect to postgresql://" in told.shown["evidence.json"]


@pytest.mark.parametrize("name", ["stdout", "stderr", "run.json", "evidence.json", "report.html", "status"])
def test_none_is_told(told: Told, name: str) -> None:
    assert [secret for secret, value in told.secrets.items() if value in told.shown[name]] == []
    assert not re.search(r"kp1\.[\w-]{8,}", told.shown[name])


@pytest.mark.parametrize("form", ["table", "yaml", "junit", "markdown"])
def test_none_is_in_a_report(told: Told, form: str) -> None:
    assert [secret for secret, value in told.secrets.items() if value in told.shown[form]] == []


def test_the_command_that_is_shown_names_the_dsn_and_does_not_repeat_it(told: Told) -> None:
    assert "--dsn" in told.shown["evidence.json"]
    assert "KILLPOINT_DSN" in told.shown["evidence.json"]

"""A worker without a framework: it says what the contract asks for, or what its test wants it to say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg

__all__ = ["main"]

LONG_SECONDS = 60


def main() -> None:
    assignment = json.loads(os.environ["KILLPOINT_ASSIGNMENT"])
    behaviour = assignment["coordinates"]["parameters"]["behaviour"]
    if behaviour == "rubbish":
        _say_text("this is no JSON")
        return
    if behaviour == "silent":
        sys.stderr.write("Traceback: something broke early\n")
        raise SystemExit(3)
    _say(killpoint=1, attempt=assignment["attempt"], nonce=assignment["nonce"])
    for point in ("charge.before", "charge.after"):
        _passed(point, assignment["schedule"])
    _behave(behaviour)
    _say(outcome="finished", resumedFrom=None, claims=[], timings={"run": 1.5})


def _behave(behaviour: str) -> None:
    if behaviour == "hang":
        time.sleep(LONG_SECONDS)
    elif behaviour in {"leave-a-child", "leave-a-session"}:
        child = subprocess.Popen(["sleep", str(LONG_SECONDS)], start_new_session=behaviour == "leave-a-session")
        Path(os.environ["KILLPOINT_VOLUME"], "child").write_text(str(child.pid))
    elif behaviour == "session":
        with psycopg.connect(os.environ["KILLPOINT_DATABASE_URL"]):
            _say(point="charge.recorded")
            time.sleep(LONG_SECONDS)
    elif behaviour == "environment":
        Path(os.environ["KILLPOINT_VOLUME"], "environment").write_text(json.dumps(dict(os.environ)))


def _passed(point: str, schedule: list[dict[str, Any]]) -> None:
    _say(point=point, n=1, t=time.time_ns() // 1_000_000)
    if any(kill["point"] == point for kill in schedule):
        os.kill(os.getpid(), signal.SIGKILL)


def _say(**line: object) -> None:
    _say_text(json.dumps(line))


def _say_text(line: str) -> None:
    with Path(os.environ["KILLPOINT_TERMINATION_LOG"]).open("a") as log:
        log.write(line + "\n")


if __name__ == "__main__":
    main()

"""The launcher: what it starts, reports and takes with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

WORKER_SOURCES = Path(__file__).parents[3] / "workloads" / "worker" / "src"
DEADLINE_SECONDS = 20.0

MODULE = """
    import os, random, signal, subprocess, sys, time

    BEFORE_FORK = random.random()

    def main():
        do = os.environ["DO"]
        print("output of", do, os.getcwd(), flush=True)
        if do == "exit":
            sys.exit(int(os.environ["CODE"]))
        if do == "raise":
            raise RuntimeError("as ordered")
        if do == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if do == "report":
            print("random", random.random())
            print("descriptors", sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:-1])
            print("session", os.getsid(0) == os.getpid())
            print("stdin", os.readlink("/proc/self/fd/0"))
            print("handlers", [int(signal.getsignal(n) in (signal.SIG_DFL, signal.default_int_handler))
                               for n in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)])
        if do == "leave-a-child":
            child = subprocess.Popen(["sleep", "60"])
            print("left behind:", child.pid, flush=True)
        if do == "sleep":
            time.sleep(60)

    if __name__ == "__main__":
        main()
"""

THREADED = """
    import threading, time
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    def main(): ...
"""

CHATTY = """
    print("said while it was imported")
    def main(): print("said in main")
"""


class Harness:
    """A launcher process and the test's side of its protocol."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "killpoint_worker.launcher", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": f"{WORKER_SOURCES}:{folder}", "PYTHONDONTWRITEBYTECODE": "1"},
        )

    def send(self, **command: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the launcher ended: {self.process.wait(DEADLINE_SECONDS)}"
        document: dict[str, Any] = json.loads(line)
        return document

    def launch(self, identity: str, do: str, **env: str | None) -> int:
        self.send(
            launch=identity, env={"DO": do, **env}, directory=str(self.folder), output=str(self.output_path(identity))
        )
        launched = self.read()
        assert launched["launched"] == identity, launched
        pid: int = launched["pid"]
        return pid

    def run(self, identity: str, do: str, **env: str | None) -> dict[str, Any]:
        """Launch an attempt and wait for its end."""
        self.launch(identity, do, **env)
        ended = self.read()
        assert ended["ended"] == identity
        return ended

    def output_path(self, identity: str) -> Path:
        return self.folder / f"{identity}.out"

    def output(self, identity: str) -> str:
        return self.output_path(identity).read_text()

    def close(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        code = self.process.wait(DEADLINE_SECONDS)
        self.process.stdout.close()
        return code


Start = Callable[..., Harness]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Harness] = []
    for name, source in (("attempt", MODULE), ("threaded", THREADED), ("chatty", CHATTY)):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))

    def begin(*arguments: str) -> Harness:
        harness = Harness(tmp_path, *arguments)
        running.append(harness)
        return harness

    yield begin
    for harness in running:
        harness.close()


@pytest.fixture(params=["cold", "fork"])
def ready(request: pytest.FixtureRequest, start: Start) -> Harness:
    fork = ["--fork"] if request.param == "fork" else []
    harness = start("--module", "attempt", *fork)
    report = harness.read()
    assert report["ready"] is True
    assert report["pid"] == harness.process.pid
    assert report["imported_ms"] >= 0
    return harness


def gone(pid: int) -> bool:
    """Whether the process is dead, within the deadline; a zombie that waits for its parent is dead."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_exit_codes_and_output_reach_the_harness(ready: Harness) -> None:
    ended = ready.run("a", "exit", CODE="3")
    assert (ended["code"], ended["signal"]) == (3, None)
    assert ready.output("a") == f"output of exit {ready.folder}\n"


def test_a_signal_is_reported_as_a_signal(ready: Harness) -> None:
    ended = ready.run("a", "die")
    assert (ended["code"], ended["signal"]) == (None, signal.SIGKILL)


def test_an_exception_of_main_is_exit_1_with_its_traceback_in_the_output(ready: Harness) -> None:
    assert ready.run("a", "raise")["code"] == 1
    assert "RuntimeError: as ordered" in ready.output("a")


def test_an_attempt_inherits_no_descriptor_but_has_a_session_and_plain_signals(ready: Harness) -> None:
    assert ready.run("a", "report")["code"] == 0
    output = ready.output("a")
    assert "descriptors [0, 1, 2]" in output
    assert "session True" in output
    assert "stdin /dev/null" in output
    assert "handlers [1, 1, 1]" in output


def test_forked_attempts_draw_different_random_numbers(ready: Harness) -> None:
    numbers = set()
    for identity in ("a", "b"):
        ready.run(identity, "report")
        numbers.add(next(line for line in ready.output(identity).splitlines() if line.startswith("random")))
    assert len(numbers) == 2


def test_an_environment_variable_can_be_taken_away(ready: Harness) -> None:
    assert ready.run("a", "exit", CODE=None)["code"] == 1
    assert "KeyError: 'CODE'" in ready.output("a")


def test_what_an_ended_attempt_left_in_its_group_is_killed_before_its_end_is_reported(ready: Harness) -> None:
    ready.run("a", "leave-a-child")
    left = int(ready.output("a").split("left behind: ")[1])
    assert gone(left)


def test_a_signal_command_reaches_the_attempt(ready: Harness) -> None:
    ready.launch("a", "sleep")
    ready.send(signal="a", number=9)
    assert ready.read()["signal"] == signal.SIGKILL


def test_a_signal_to_an_ended_attempt_says_nothing_and_harms_nobody(ready: Harness) -> None:
    ready.run("a", "exit", CODE="0")
    ready.send(signal="a", number=9)
    assert ready.run("b", "exit", CODE="0")["code"] == 0


def test_many_attempts_at_once_are_all_reaped(ready: Harness) -> None:
    wanted = {f"a{number}": number for number in range(12)}
    for identity, number in wanted.items():
        ready.send(
            launch=identity,
            env={"DO": "exit", "CODE": str(number)},
            directory=str(ready.folder),
            output=str(ready.output_path(identity)),
        )
    codes: dict[str, int] = {}
    while len(codes) < len(wanted):
        report = ready.read()
        if "ended" in report:
            codes[report["ended"]] = report["code"]
    assert codes == wanted


def test_the_end_of_stdin_kills_every_attempt(ready: Harness) -> None:
    pid = ready.launch("a", "sleep")
    assert ready.close() == 0
    assert gone(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_PDEATHSIG")
def test_a_killed_launcher_takes_its_attempts_with_it(ready: Harness) -> None:
    pid = ready.launch("a", "sleep")
    ready.process.kill()
    assert gone(pid)


def test_sigterm_kills_every_attempt_and_reports_their_ends(ready: Harness) -> None:
    pid = ready.launch("a", "sleep")
    ready.process.terminate()
    assert ready.read()["signal"] == signal.SIGKILL
    assert gone(pid)
    assert ready.process.wait(DEADLINE_SECONDS) == 0


def test_what_cannot_be_started_is_reported_and_the_launcher_goes_on(ready: Harness) -> None:
    ready.send(launch="a", env={}, directory=str(ready.folder / "absent"), output=str(ready.output_path("a")))
    failed = ready.read()
    assert failed["failed"] == "a"
    assert "No such file" in failed["error"]
    assert ready.run("b", "exit", CODE="0")["code"] == 0


def test_a_second_launch_of_a_running_attempt_is_refused(ready: Harness) -> None:
    ready.launch("a", "sleep")
    ready.send(launch="a", env={}, directory=str(ready.folder), output=str(ready.output_path("a")))
    assert ready.read()["failed"] == "a"


@pytest.mark.parametrize("line", [b"rubbish", b"[]", b'{"launch":"a"}', b'{"signal":"a"}', b"3"])
def test_a_line_that_is_no_command_is_reported_and_skipped(ready: Harness, line: bytes) -> None:
    assert ready.process.stdin is not None
    ready.process.stdin.write(line + b"\n")
    ready.process.stdin.flush()
    assert ready.read()["failed"] is None
    assert ready.run("b", "exit", CODE="0")["code"] == 0


def test_a_module_that_started_a_thread_is_not_forked(start: Start) -> None:
    harness = start("--module", "threaded", "--fork")
    report = harness.read()
    assert report["ready"] is False
    assert "2 threads" in report["error"]
    assert harness.process.wait(DEADLINE_SECONDS) == 1


def test_a_module_that_cannot_be_imported_is_said_so(start: Start) -> None:
    report = start("--module", "absent_module", "--fork").read()
    assert report["ready"] is False
    assert "absent_module" in report["error"]


def test_what_an_import_prints_does_not_get_into_the_protocol(start: Start) -> None:
    harness = start("--module", "chatty", "--fork")
    assert harness.read()["ready"] is True
    assert harness.run("a", "")["code"] == 0
    assert harness.output("a") == "said in main\n"


def test_a_command_in_any_language_is_started_cold(start: Start) -> None:
    harness = start("--command", '["sh", "-c", "echo $DO; exit 4"]')
    assert harness.read()["ready"] is True
    assert harness.run("a", "hello")["code"] == 4
    assert harness.output("a") == "hello\n"


def test_a_command_that_does_not_exist_fails_its_launch(start: Start) -> None:
    harness = start("--command", '["no-such-program"]')
    assert harness.read()["ready"] is True
    harness.send(launch="a", env={}, directory=str(harness.folder), output=str(harness.output_path("a")))
    failed = harness.read()
    assert failed["failed"] == "a"
    assert "no-such-program" in failed["error"]

"""Workers that park and workers that are frozen, against control as it is deployed: a process with a database."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from killpoint.model.tokens import mint_token
from tests.contract import rig
from tests.integration.control import waiting
from tests.integration.control.waiting import ATTEMPT, RUN, TICKERS, Control, until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="freezing needs Linux"),
]

STOPPED = {"T"}
FOREIGN_TOKEN = mint_token("another key", experiment="e", tenant="t", run=RUN, attempt=ATTEMPT)

FREEZING = """
    import sys
    from pathlib import Path
    from killpoint_worker import Points, Scheduled, TerminationLog
    from killpoint_worker.freeze import Freezer
    log = TerminationLog(Path(sys.argv[1]), attempt="a.0.1", nonce="n1")
    freezer = Freezer(sys.argv[2], "t", attempt="a.0.1", patience_seconds=0.5)
    points = Points(log, (Scheduled(point="charge.after", occurrence=1, do="freeze"),), freezing=freezer)
    points.passed("charge.after")
    print("gone on")
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with rig.postgres() as url:
        yield url


@pytest.fixture
def control(server: str, tmp_path: Path) -> Iterator[Control]:
    with rig.database(server) as dsn:
        control = Control(dsn, tmp_path)
        control.start()
        try:
            yield control
        finally:
            control.kill()


def is_running(pid: int) -> bool:
    """Whether a process is there; a dead one that nobody has asked for yet is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


# --- parked ----------------------------------------------------------------------------------------------------


def test_a_parked_step_waits_while_other_threads_go_on_until_it_is_released(tmp_path: Path, control: Control) -> None:
    with waiting.worker(tmp_path, control.url, do="park") as worker:
        control.until_parked()
        time.sleep(1)
        parked = control.parked()
        assert parked is not None
        assert (parked.point, parked.released) == ("charge.after", False)
        assert worker.goes_on_ticking()
        assert not worker.has_gone_on
        control.release()
        assert worker.end() == 0
        assert worker.lines[-1]["outcome"] == "finished"


@pytest.mark.parametrize("do", ["park", "freeze"])
def test_who_waits_outlives_control_and_its_release_does_too(tmp_path: Path, control: Control, do: str) -> None:
    with waiting.worker(tmp_path, control.url, do=do) as worker:
        control.until_parked()
        control.kill()
        time.sleep(0.5)
        control.start()
        time.sleep(0.5)
        assert not worker.has_gone_on
        control.kill()
        control.release()
        time.sleep(0.5)
        assert not worker.has_gone_on
        control.start()
        assert worker.end() == 0
        assert worker.has_gone_on


@pytest.mark.parametrize("do", ["park", "freeze"])
def test_who_comes_before_control_is_there_waits_for_it(tmp_path: Path, control: Control, do: str) -> None:
    control.kill()
    with waiting.worker(tmp_path, control.url, do=do) as worker:
        worker.until_at_the_point()
        time.sleep(0.5)
        control.start()
        control.until_parked()
        assert not worker.has_gone_on
        control.release()
        assert worker.end() == 0


@pytest.mark.parametrize(("do", "error"), [("park", "ControlRefused"), ("freeze", "NotThawed")])
def test_an_attempt_whose_token_is_refused_fails_at_the_point(
    tmp_path: Path, control: Control, do: str, error: str
) -> None:
    with waiting.worker(tmp_path, control.url, do=do, token=FOREIGN_TOKEN) as worker:
        assert worker.end() == 1
        assert worker.lines[-2]["point"] == "charge.after"
        assert worker.lines[-1]["error"]["class"] == error
        assert "401" in worker.lines[-1]["error"]["message"]
        assert not worker.has_gone_on
        assert control.parked() is None


# --- frozen ----------------------------------------------------------------------------------------------------


def test_a_frozen_worker_stands_still_with_all_its_threads_and_goes_on_when_released(
    tmp_path: Path, control: Control
) -> None:
    with waiting.worker(tmp_path, control.url, do="freeze") as worker:
        control.until_parked()
        states = worker.states
        assert len(states) == 1 + len(TICKERS) + 1
        assert set(states) == STOPPED
        assert not worker.goes_on_ticking()
        assert worker.lines[-1]["point"] == "charge.after"
        control.release()
        assert worker.end() == 0
        assert worker.has_gone_on
        assert [line.get("point") or line.get("outcome") for line in worker.lines[1:]] == [
            "charge.before",
            "charge.after",
            "finished",
        ]


def test_it_is_stopped_before_control_hears_of_it(tmp_path: Path, control: Control) -> None:
    """Whoever reads that it is parked may start another executor at once."""
    control.kill()
    with waiting.worker(tmp_path, control.url, do="freeze") as worker:
        worker.until_at_the_point()
        until(lambda: set(worker.states) == STOPPED, "it stands still")
        assert control.parked() is None


def test_nobody_elses_sigcont_lets_its_step_go_on(tmp_path: Path, control: Control) -> None:
    """Up to the release and after it: however the two meet, the step goes on after the release, and surely then."""
    with waiting.worker(tmp_path, control.url, do="freeze") as worker:
        control.until_parked()
        for _ in range(200):
            os.kill(worker.pid, signal.SIGCONT)
        until(lambda: set(worker.states) == STOPPED, "it stands still again")
        assert not worker.has_gone_on
        release = subprocess.Popen(
            [sys.executable, "-c", f"import os\nwhile True: os.kill({worker.pid}, {int(signal.SIGCONT)})"],
            stderr=subprocess.DEVNULL,
        )
        try:
            time.sleep(0.3)
            assert not worker.has_gone_on
            control.release()
            assert worker.end() == 0
        finally:
            release.kill()
            release.wait()
        assert worker.has_gone_on


def test_the_end_of_a_frozen_worker_is_the_end_of_its_helper(tmp_path: Path, control: Control) -> None:
    with waiting.worker(tmp_path, control.url, do="freeze") as worker:
        control.until_parked()
        helper = worker.helper
        os.kill(worker.pid, signal.SIGKILL)
        assert worker.end() == -signal.SIGKILL
        until(lambda: not is_running(helper), "the helper ends")


def test_a_worker_whose_helper_dies_is_let_go_by_the_kernel_and_fails(tmp_path: Path, control: Control) -> None:
    with waiting.worker(tmp_path, control.url, do="freeze") as worker:
        control.until_parked()
        os.kill(worker.helper, signal.SIGKILL)
        assert worker.end() == 1
        assert worker.lines[-1]["error"]["class"] == "NotThawed"
        assert not worker.has_gone_on


def frozen_at(url: str, log: Path) -> subprocess.CompletedProcess[bytes]:
    """A process that is frozen with half a second's patience, and says so when it goes on."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FREEZING), str(log), url],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(rig.WORKLOADS / "worker" / "src")},
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_the_patience_of_a_frozen_worker_is_bounded(tmp_path: Path) -> None:
    ended = frozen_at("http://127.0.0.1:1", tmp_path / "log")
    assert (ended.returncode, ended.stdout) == (1, b"")
    last = json.loads((tmp_path / "log").read_text().splitlines()[-1])
    assert "neither released nor killed" in last["error"]["message"]


class Deadly(BaseHTTPRequestHandler):
    """Control that lets nobody live."""

    def do_POST(self) -> None:
        body = b'{"do":"die"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_a_frozen_worker_that_is_to_die_does_so_without_another_line(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), Deadly) as deadly:
        Thread(target=deadly.handle_request).start()
        ended = frozen_at(f"http://127.0.0.1:{deadly.server_port}", tmp_path / "log")
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b"")
    assert json.loads((tmp_path / "log").read_text().splitlines()[-1])["point"] == "charge.after"


def test_a_frozen_attempt_of_a_launcher_ends_with_it_and_so_does_the_helper(tmp_path: Path, control: Control) -> None:
    """Forked attempts, in a session of their own: the launcher's end has to reach a stopped process' helper, too."""
    env = waiting.environment(tmp_path, control.url, do="freeze")
    launcher = subprocess.Popen(
        [sys.executable, "-m", "killpoint_worker.launcher", "--module", waiting.module(tmp_path), "--fork"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
    )
    assert launcher.stdin is not None
    assert launcher.stdout is not None
    with launcher.stdin as orders, launcher.stdout as reports:
        launch = {"launch": secrets.token_hex(2), "env": env, "directory": str(tmp_path), "output": "output"}
        assert json.loads(reports.readline())["ready"] is True
        orders.write(json.dumps(launch).encode() + b"\n")
        orders.flush()
        pid = json.loads(reports.readline())["pid"]
        control.until_parked()
        worker = waiting.Worker(pid=pid, folder=tmp_path)
        assert set(worker.states) == STOPPED
        helper = worker.helper
        orders.close()
        assert json.loads(reports.readline())["signal"] == signal.SIGKILL
        until(lambda: not is_running(pid) and not is_running(helper), "both are gone")
    assert launcher.wait(waiting.DEADLINE_SECONDS) == 0

"""The ends of an attempt, in processes that really end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from killpoint.core.points import OWN_EXIT as OWN_EXIT_OF_THE_HARNESS
from killpoint_worker.ends import OWN_EXIT, STILL_ALIVE

LIMIT_BYTES = 256 << 20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what a process has is read from /proc")

LEAVING = """
    import atexit, sys, threading
    from pathlib import Path
    from killpoint_worker import Points, Scheduled, TerminationLog
    folder = Path(sys.argv[1])
    log = TerminationLog(folder / "log", attempt="a.0.1", nonce="n1")
    points = Points(log, (Scheduled(point="charge.after", occurrence=30, do="exit"),))
    buffered = (folder / "buffered").open("w")
    buffered.write("never on disk")
    print("never said")
    atexit.register((folder / "said-goodbye").touch)
    def pass_on(name):
        try:
            while True:
                points.passed(name)
        finally:
            (folder / "said-goodbye").touch()
    for name in ("poll.before", "charge.after", "poll.after"):
        threading.Thread(target=pass_on, args=(name,)).start()
"""

EXHAUSTING = """
    import resource, sys
    from killpoint_worker import ends
    if sys.argv[1:]:
        resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
    def resident():
        return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
    before = resident()
    def leave(code):
        print(code, resident() - before, flush=True)
        real(code)
    real, ends.os._exit = ends.os._exit, leave
"""


def run(source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source), *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_leaving_it_flushes_nothing_and_no_other_thread_writes_after_the_point(tmp_path: Path) -> None:
    ended = run(LEAVING, str(tmp_path))
    assert (ended.returncode, ended.stdout, ended.stderr) == (OWN_EXIT, "", "")
    assert (tmp_path / "buffered").read_text() == ""
    assert not (tmp_path / "said-goodbye").exists()
    last = json.loads((tmp_path / "log").read_text().splitlines()[-1])
    assert (last["point"], last["n"]) == ("charge.after", 30)


def test_both_sides_of_the_contract_know_the_same_exit_code() -> None:
    assert OWN_EXIT == OWN_EXIT_OF_THE_HARNESS


def test_memory_that_nobody_limits_is_taken_up_to_a_bound_and_is_really_touched() -> None:
    ended = run(f"{EXHAUSTING}\n    ends.exhaust_memory(bytes_max={LIMIT_BYTES})")
    code, touched = (int(word) for word in ended.stdout.split())
    assert (ended.returncode, code) == (STILL_ALIVE, STILL_ALIVE), ended.stderr
    assert LIMIT_BYTES <= touched < LIMIT_BYTES + (32 << 20)


def test_memory_is_taken_for_a_bounded_time() -> None:
    began = time.monotonic()
    ended = run(f"{EXHAUSTING}\n    ends.exhaust_memory(seconds_max=0.05)")
    assert ended.returncode == STILL_ALIVE, ended.stderr
    assert time.monotonic() - began < 20


def test_memory_that_the_kernel_refuses_is_no_end_by_the_kernel() -> None:
    ended = run(f"{EXHAUSTING}\n    ends.exhaust_memory()", str(LIMIT_BYTES))
    assert ended.returncode == STILL_ALIVE, ended.stderr
    assert int(ended.stdout.split()[1]) < LIMIT_BYTES


def test_it_is_the_first_to_be_killed_when_memory_is_short() -> None:
    ended = run(f"""{EXHAUSTING}
    ends.os._exit = lambda code: (print(open("/proc/self/oom_score_adj").read(), flush=True), real(code))
    ends.exhaust_memory(bytes_max=1)""")
    assert ended.stdout.split() == ["1000"]

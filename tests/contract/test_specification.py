"""docs/worker-contract.md: what its examples say is what both sides of the contract do."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar, get_args

import pytest

from killpoint.core.contract import DO, Assigned, assignment_of, read_termination
from killpoint.model.cells import AttemptId, Coordinates, Method, TrialId
from killpoint.model.evidence import Ordered
from killpoint_worker import Assignment
from killpoint_worker.assignment import Do
from killpoint_worker.control import PATIENCE_SECONDS, ControlClient
from killpoint_worker.ends import MEMORY_BYTES_MAX, MEMORY_SECONDS_MAX, OWN_EXIT, STILL_ALIVE
from killpoint_worker.log import LIMIT_BYTES, PointLine
from killpoint_worker.program import StopWord
from tests.contract.fixtures import NewTrial
from tests.contract.rig import ROOT, Launcher, Setup, Trial, setups

pytestmark = pytest.mark.contract

PAGE = (ROOT / "docs" / "worker-contract.md").read_text(encoding="utf-8")
BLOCKS = {
    match["label"]: match["text"]
    for match in re.finditer(r"^```(?P<label>\w+(?: [\w-]+)?)\n(?P<text>.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
}
LOGS = ("killed", "folded")
ANSWERS = ("waiting", "released")
OUTCOMES = ("finished", "failed", "inspected", "described")

ASSIGNMENT: dict[str, Any] = json.loads(BLOCKS["json assignment"])
HEADER = BLOCKS["jsonl header"]
(LANGGRAPH,) = setups("langgraph")


def fault_of(log: str) -> str | None:
    return read_termination(log, attempt=ASSIGNMENT["attempt"], nonce=ASSIGNMENT["nonce"]).fault


def test_every_example_of_the_page_is_looked_at_here() -> None:
    looked_at = {"json assignment", "json schedules", "jsonl header", "jsonl point", "python"}
    looked_at |= {f"json {name}" for name in ("parked", *ANSWERS)}
    looked_at |= {f"jsonl {name}" for name in (*LOGS, *OUTCOMES)}
    assert set(BLOCKS) == looked_at
    assert PAGE.count("\n```") == 2 * len(BLOCKS), "two examples have the same label"


def test_the_assignment_is_read_by_the_worker_and_is_what_the_harness_writes() -> None:
    read = Assignment.from_json(BLOCKS["json assignment"])
    assert written(read, Method.SIGKILL) == ASSIGNMENT


def written(read: Assignment, method: Method) -> dict[str, Any]:
    """The page's assignment as the harness writes it, for a kill by this method."""
    return assignment_of(
        Assigned(
            experiment=read.experiment,
            workflow=read.workflow.name,
            attempt=AttemptId(trial=TrialId(cell="7f31e2c0", number=3), number=1),
            run=read.run,
            nonce=read.nonce,
            action=read.action,
            scheduled="charge.after",
            method=method,
            coordinates=Coordinates(setup="langgraph", parameters=(("durability", "sync"),)),
            ordered=(Ordered(action="charge", order="order-7f31e2c0-3", amount=4900, currency="EUR"),),
        )
    )


def test_the_schedules_are_read_by_the_worker_and_are_what_the_harness_writes() -> None:
    schedules = json.loads(BLOCKS["json schedules"])
    assert set(schedules) == {method.value for method in Method}
    for method in Method:
        read = Assignment.from_json(json.dumps({**ASSIGNMENT, "schedule": schedules[method]}))
        assert written(read, method)["schedule"] == schedules[method]
        assert [(item.point, item.do) for item in read.schedule] == [("charge.after", DO[method])]


def test_each_method_has_its_proof_and_each_word_its_rule() -> None:
    words = set(get_args(Do))
    table = PAGE[PAGE.index("### How a kill is proven") : PAGE.index("## 4 How an attempt ends")]
    assert set(re.findall(r"^\| `([a-z-]+)` \| `([a-z-]+)` \|", table, re.MULTILINE)) == set(DO.items())
    rules = PAGE[PAGE.index("### What is scheduled at a point") : PAGE.index("### How a kill is proven")]
    assert set(re.findall(r"^- `([a-z-]+)`:", rules, re.MULTILINE)) == words == set(DO.values())
    assert f"exit code {OWN_EXIT}" in rules
    assert f"exits with {STILL_ALIVE}" in rules
    assert f"{MEMORY_BYTES_MAX >> 30} GiB, after {MEMORY_SECONDS_MAX:.0f} seconds" in rules
    assert f"at most {PATIENCE_SECONDS / 60:.0f} minutes" in rules
    assert json.loads(BLOCKS["jsonl described"])["does"] == list(get_args(Do))


class Saying(BaseHTTPRequestHandler):
    """Control that gives the page's answers, one after another, and keeps what it was asked."""

    asked: ClassVar[list[tuple[str, bytes]]] = []

    def do_POST(self) -> None:
        self.asked.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        body = BLOCKS[f"json {ANSWERS[len(self.asked) - 1]}"].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_the_worker_asks_control_and_understands_it_as_the_page_says() -> None:
    with HTTPServer(("127.0.0.1", 0), Saying) as server:

        def answer() -> None:
            for _ in ANSWERS:
                server.handle_request()

        thread = Thread(target=answer)
        thread.start()
        client = ControlClient(f"http://127.0.0.1:{server.server_port}", "t", attempt=ASSIGNMENT["attempt"])
        assert client.park("charge.after", 1) == "go"
        thread.join()
    path = f"/v1/attempts/{ASSIGNMENT['attempt']}/parked"
    assert [(where, json.loads(body)) for where, body in Saying.asked] == [
        (path, json.loads(BLOCKS["json parked"]))
    ] * len(ANSWERS)


@pytest.mark.parametrize("name", LOGS)
def test_a_log_of_the_page_is_read_without_fault(name: str) -> None:
    assert fault_of(BLOCKS[f"jsonl {name}"]) is None


@pytest.mark.parametrize("name", OUTCOMES)
def test_an_outcome_of_the_page_is_read_without_fault(name: str) -> None:
    reading = read_termination(
        HEADER + BLOCKS[f"jsonl {name}"], attempt=ASSIGNMENT["attempt"], nonce=ASSIGNMENT["nonce"]
    )
    assert reading.fault is None
    assert reading.outcome is not None
    assert reading.outcome.word == name


@pytest.mark.parametrize("label", ["jsonl point", *(f"jsonl {name}" for name in LOGS)])
def test_a_point_of_the_page_is_written_as_the_worker_writes_it(label: str) -> None:
    lines = [line for line in BLOCKS[label].splitlines() if "point" in json.loads(line)]
    assert lines
    for line in lines:
        said = json.loads(line)
        written = PointLine(said["point"], said.get("n", 0), said.get("t"), said.get("folded", 0))
        assert written.encode().decode() == line + "\n"


def test_the_page_and_the_worker_know_the_same_limit_and_the_same_stops() -> None:
    assert f"{LIMIT_BYTES:,} bytes" in PAGE
    table = set(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE))
    assert set(get_args(StopWord)) <= table


def test_the_points_of_the_page_are_those_of_the_catalog() -> None:
    assert json.loads(BLOCKS["jsonl described"])["points"] == list(LANGGRAPH.points)
    table = PAGE[PAGE.index("## 3 Points") : PAGE.index("### What is scheduled")]
    assert set(re.findall(r"`((?:prepare|charge|finalize)\.\w+)`", table)) == set(LANGGRAPH.points)


@pytest.mark.integration
def test_the_worker_of_the_page_runs(tmp_path: Path, new_trial: NewTrial) -> None:
    (tmp_path / "workload" / "src").mkdir(parents=True)
    (tmp_path / "workload" / "src" / "plain.py").write_text(BLOCKS["python"])
    entry = {"name": "plain", "module": "plain", "forkable": True, "needs_database": False, "stores": ["volume"]}
    setup = Setup(workload=tmp_path / "workload", entry=entry)
    trial: Trial = new_trial(setup, "volume", key="none")
    assert isinstance(trial.launcher, Launcher)
    trial.killed_at("charge.after")
    trial.resumed()
    assert trial.charges == 2, "it keeps nothing, so it charges again"
    assert trial.attempt("describe").lines[-1]["points"] == [p for p in LANGGRAPH.points if p != "charge.recorded"]

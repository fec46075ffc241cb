"""One key is one charge: under any concurrency, and through a SIGKILL of the service."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.integration.payments import rig
from tests.integration.payments.rig import CHARGE, Caller, Service, code, key_header

pytestmark = pytest.mark.integration

CLIENTS = 50


@dataclass(slots=True)
class Persistent:
    """A client that asks for the same charge until it is answered 201, whatever happens to the service."""

    caller: Caller
    key: str
    order: str = "order-1"
    answers: list[httpx.Response] = field(default_factory=list)
    broken: int = 0
    """How often there was no answer at all."""

    def run(self, start: threading.Barrier) -> httpx.Response:
        start.wait(rig.SECONDS_MAX)
        deadline = time.monotonic() + rig.SECONDS_MAX
        with self.caller.client() as client:
            while time.monotonic() < deadline:
                try:
                    answer = client.post(
                        "/v1/charges", json={**CHARGE, "order": self.order}, headers=key_header(self.key)
                    )
                except httpx.TransportError:
                    self.broken += 1
                    time.sleep(0.02)
                    continue
                self.answers.append(answer)
                if answer.status_code == 201:
                    return answer
                assert answer.status_code in {409, 503}, answer.text
                assert answer.headers["retry-after"] == "1"
                time.sleep(0.02)
        raise AssertionError(f"{self.key} was not charged: {[answer.text for answer in self.answers[-1:]]}")


def ask_at_once(clients: list[Persistent], meanwhile: list[tuple[float, object]] | None = None) -> list[httpx.Response]:
    """All clients start together; ``meanwhile`` is done in this thread, each step after a delay in seconds."""
    start = threading.Barrier(len(clients) + 1)
    with ThreadPoolExecutor(len(clients)) as pool:
        running = [pool.submit(client.run, start) for client in clients]
        start.wait(rig.SECONDS_MAX)
        for delay_seconds, step in meanwhile or []:
            time.sleep(delay_seconds)
            assert callable(step)
            step()
        return [one.result() for one in running]


def test_fifty_clients_with_one_key_make_one_charge(caller: Caller) -> None:
    clients = [Persistent(caller, "key-1") for _ in range(CLIENTS)]
    answers = ask_at_once(clients)
    assert len({answer.content for answer in answers}) == 1
    assert len([answer for answer in answers if "idempotent-replayed" not in answer.headers]) == 1
    (effect,) = caller.effects()
    assert effect["id"] == answers[0].json()["id"]
    outcomes = [request["outcome"] for request in caller.requests()]
    assert len(outcomes) == sum(len(client.answers) for client in clients)
    assert outcomes.count("committed") == 1
    assert caller.in_flight() == 0


def test_a_second_request_with_a_key_in_flight_is_told_so_at_once(service: Service) -> None:
    caller = service.caller()
    with ThreadPoolExecutor(1) as pool:
        with rig.no_commits(service.database_url):
            first = pool.submit(caller.charge, "key-1")
            rig.until(lambda: len(rig.waiting_backends(service.database_url)) == 1, what="the first is in flight")
            began = time.monotonic()
            second = caller.charge("key-1")
            assert time.monotonic() - began < 5
        assert first.result().status_code == 201
    assert (second.status_code, code(second), second.headers["retry-after"]) == (409, "idempotency-key-in-flight", "1")
    assert caller.charge("key-1").content == first.result().content
    assert [request["outcome"] for request in caller.requests()] == ["conflict", "committed", "replayed"]


def test_two_notifications_at_once_are_one_and_neither_is_refused(caller: Caller) -> None:
    start = threading.Barrier(10)

    def notify() -> int:
        start.wait(rig.SECONDS_MAX)
        return caller.post("/v1/notifications", {"order": "order-1", "kind": "finalize"}).status_code

    with ThreadPoolExecutor(10) as pool:
        statuses = sorted(one.result() for one in [pool.submit(notify) for _ in range(10)])
    assert statuses == [200] * 9 + [201]
    assert len(caller.effects()) == 1


@pytest.mark.parametrize("delay_seconds", [0.0, 0.05, 0.1])
def test_one_key_is_one_charge_through_a_sigkill_of_the_service(service: Service, delay_seconds: float) -> None:
    caller = service.caller()
    clients = [Persistent(caller, "key-1") for _ in range(CLIENTS)]
    answers = ask_at_once(clients, [(delay_seconds, service.kill), (0, service.start)])
    assert len({answer.content for answer in answers}) == 1
    assert len(caller.effects()) == 1
    assert len(set(service.boots)) == 2


@pytest.mark.slow
def test_each_key_is_one_charge_through_sigkills_and_no_acknowledged_one_is_missing(service: Service) -> None:
    caller = service.caller()
    rounds = 4
    answers: dict[str, bytes] = {}
    broken = 0
    for number in range(rounds):
        clients = [Persistent(caller, f"key-{number}-{one}", f"order-{number}-{one}") for one in range(CLIENTS)]
        steps: list[tuple[float, object]] = [(0.03 * (number + 1), service.kill), (0, service.start)]
        answers |= {
            client.key: answer.content for client, answer in zip(clients, ask_at_once(clients, steps), strict=True)
        }
        broken += sum(client.broken for client in clients)
    effects = caller.effects()
    assert sorted(str(effect["key"]) for effect in effects) == sorted(answers)
    assert {str(effect["id"]) for effect in effects} == {
        httpx.Response(201, content=body).json()["id"] for body in answers.values()
    }
    assert broken > 0, "no request was cut off, so the kills proved nothing"


def test_a_commit_that_outlives_its_service_is_over_before_the_next_boot_is_ready(service: Service) -> None:
    caller = service.caller()
    with ThreadPoolExecutor(1) as pool:
        with rig.no_commits(service.database_url):
            first = pool.submit(caller.charge, "key-1")
            rig.until(lambda: len(rig.waiting_backends(service.database_url)) == 1, what="the first is in flight")
            service.kill()
            assert isinstance(first.exception(rig.SECONDS_MAX), httpx.TransportError)
            service.launch()
            rig.until(lambda: answers(f"{service.url}/healthz") == 200, what="the next boot lives")
            time.sleep(0.5)
            assert answers(f"{service.url}/readyz") == 503
            refused = caller.charge("key-1")
            assert (refused.status_code, code(refused)) == (503, "not-ready")
            assert len(rig.waiting_backends(service.database_url)) == 1
        service.await_ready()
    assert answers(f"{service.url}/readyz") == 200
    (effect,) = caller.effects()
    again = caller.charge("key-1")
    assert (again.json()["id"], again.headers["idempotent-replayed"]) == (effect["id"], "true")


def test_a_second_service_on_the_same_database_gives_up_and_says_why(
    service: Service, tmp_path_factory: pytest.TempPathFactory
) -> None:
    second = Service(service.database_url, tmp_path_factory.mktemp("second"))
    second.launch("--orphans-seconds-max", "0.5")
    rig.until(lambda: second.exited, what="the second service gives up")
    assert second.process is not None
    assert second.process.returncode == 3
    assert "sessions of another killpoint-payments" in second.output.read_text()
    assert service.caller().charge().status_code == 201


def test_a_session_that_breaks_in_a_commit_leaves_nothing_in_doubt(service: Service) -> None:
    caller = service.caller()
    with ThreadPoolExecutor(1) as pool, rig.no_commits(service.database_url):
        first = pool.submit(caller.charge, "key-1")
        rig.until(lambda: len(rig.waiting_backends(service.database_url)) == 1, what="the first is in flight")
        with psycopg.connect(service.database_url) as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", (rig.waiting_backends(service.database_url)[0],))
        refused = first.result()
    assert (refused.status_code, code(refused)) == (503, "outcome-unknown")
    rig.until(lambda: caller.in_flight() == 0, what="it is known what became of it")
    assert [(request["outcome"], request["effect"]) for request in caller.requests()] == [("failed", None)]
    assert caller.charge("key-1").status_code == 201
    assert len(caller.effects()) == 1


def answers(url: str) -> int:
    """The status that ``url`` answers with; 0 while nobody listens."""
    try:
        return httpx.get(url, verify=rig.CONTEXT).status_code
    except httpx.TransportError:
        return 0


def test_when_all_sessions_are_ended_the_service_opens_others(service: Service) -> None:
    caller = service.caller()
    caller.charge("key-1")
    with psycopg.connect(service.database_url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND starts_with(application_name, 'killpoint-payments/')"
        )
    (answer,) = ask_at_once([Persistent(caller, "key-2", "order-2")])
    assert answer.status_code == 201
    rig.until(lambda: answers(f"{service.url}/readyz") == 200, what="it is ready again")
    assert [effect["key"] for effect in caller.effects()] == ["key-1", "key-2"]


@pytest.mark.slow
def test_without_a_database_requests_are_refused_and_nothing_is_in_doubt_once_it_is_back(tmp_path: Path) -> None:
    """Postgres itself is stopped under a request whose commit waits, and started again."""
    with rig.scratch() as folder:
        data = Path(folder) / "data"
        with rig.postgres(data) as server:
            service = Service(server, tmp_path)
            service.start()
            caller = service.caller()
            with ThreadPoolExecutor(1) as pool, rig.no_commits(server):
                first = pool.submit(caller.charge, "key-1")
                rig.until(lambda: len(rig.waiting_backends(server)) == 1, what="the first is in flight")
                rig.crash_postgres(data)
                assert code(first.result()) == "outcome-unknown"
            refused = caller.charge("key-2")
            assert (refused.status_code, code(refused)) == (503, "database-unavailable")
            assert (answers(f"{service.url}/readyz"), answers(f"{service.url}/healthz")) == (503, 200)
        with rig.postgres(data):
            rig.until(lambda: answers(f"{service.url}/readyz") == 200, what="it is ready again")
            rig.until(lambda: caller.in_flight() == 0, what="it is known what became of it")
            assert {(one["outcome"], one["key"]) for one in caller.requests()} >= {("failed", "key-1")}
            assert caller.charge("key-1").status_code == 201
            assert len(caller.effects()) == 1
            assert service.stop() == 0

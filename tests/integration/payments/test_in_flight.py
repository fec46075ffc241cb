"""A request is in flight until its transaction has ended, whatever becomes of the client."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.payments import rig
from tests.integration.payments.rig import Caller, Service

pytestmark = pytest.mark.integration

# Sends its request, says so, and waits for an answer until it is killed: a worker at its point `charge.sent`.
WORKER = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(sys.stdin.buffer.read())
print("sent", flush=True)
connection.recv(1)
"""
# The same, but it kills itself in the very moment in which the request is written.
HASTY_WORKER = """
import os, signal, socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
request = sys.stdin.buffer.read()
head, blank, body = request.partition(b"\\r\\n\\r\\n")
connection.sendall(head + blank)
connection.sendall(body)
os.kill(os.getpid(), signal.SIGKILL)
"""
BODY = b'{"order":"order-1","amount":4900,"currency":"EUR"}'


def request(caller: Caller, *, body: bytes = BODY, length: int | None = None) -> bytes:
    head = (
        "POST /v1/charges HTTP/1.1\r\nHost: payments\r\n"
        f"Authorization: Bearer {caller.token()}\r\nContent-Length: {length or len(body)}\r\n\r\n"
    )
    return head.encode() + body


def worker(program: str, service: Service, sent: bytes) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(service.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(sent)
    process.stdin.close()
    return process


def test_it_is_in_flight_while_its_transaction_is_open_and_not_after(service: Service) -> None:
    caller, other = service.caller(), service.caller()
    with ThreadPoolExecutor(3) as pool:
        with rig.no_commits(service.database_url):
            running = [pool.submit(caller.charge) for _ in range(3)]
            rig.until(lambda: caller.in_flight() == 3, what="three requests are in flight")
            assert caller.requests() == []
            assert other.in_flight() == 0
        assert [one.result().status_code for one in running] == [201, 201, 201]
    assert caller.in_flight() == 0
    assert len(caller.effects()) == 3


def test_it_stays_in_flight_when_the_client_is_killed_and_is_committed_all_the_same(service: Service) -> None:
    caller = service.caller()
    with rig.no_commits(service.database_url):
        process = worker(WORKER, service, request(caller))
        assert process.stdout is not None
        with process.stdout as output:
            assert output.readline() == b"sent\n"
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(rig.SECONDS_MAX) == -signal.SIGKILL
        assert caller.in_flight() == 1
        rig.until(lambda: len(rig.waiting_backends(service.database_url)) == 1, what="its commit waits")
        assert caller.in_flight() == 1
        assert caller.effects() == []
    rig.until(lambda: caller.in_flight() == 0, what="its transaction has ended")
    (effect,) = caller.effects()
    (logged,) = caller.requests()
    assert (logged["outcome"], logged["effect"]) == ("committed", effect["id"])


def test_a_request_that_was_written_before_the_question_is_never_overlooked(service: Service) -> None:
    """The service is held up while a worker writes its request and dies, and while the ledger is asked.

    The question comes on a connection that is already open, so the service could read it first.
    """
    caller = service.caller()
    assert service.process is not None
    with service.admin_client() as admin, ThreadPoolExecutor(1) as pool:
        assert admin.get("/admin/v1/runs", params={"run": "warm"}).status_code == 200
        service.process.send_signal(signal.SIGSTOP)
        process = worker(HASTY_WORKER, service, request(caller))
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(rig.SECONDS_MAX) == -signal.SIGKILL
        asked = pool.submit(admin.get, "/admin/v1/runs", params={"run": caller.run})
        rig.until(lambda: rig.unread_bytes(service.admin_port) > 0, what="the question is there")
        service.process.send_signal(signal.SIGCONT)
        shown = asked.result().json()["runs"][caller.run]
    assert shown["inFlight"] == 1 or len(shown["effects"]) == 1, "it was overlooked"
    rig.until(lambda: caller.in_flight() == 0, what="its transaction has ended")
    assert [one["outcome"] for one in caller.requests()] == ["committed"]


def test_half_a_request_is_none(shared_service: Service) -> None:
    caller = shared_service.caller()
    with socket.create_connection(("127.0.0.1", shared_service.port)) as connection:
        connection.sendall(request(caller, body=BODY[:10], length=len(BODY)))
        assert caller.in_flight() == 0
    assert caller.shown() == {"effects": [], "requests": [], "inFlight": 0}


def test_more_requests_than_sessions_are_all_in_flight_and_all_committed(stopped: Service) -> None:
    stopped.start("--connections", "2")
    caller = stopped.caller()
    with ThreadPoolExecutor(8) as pool:
        with rig.no_commits(stopped.database_url):
            running = [pool.submit(caller.charge) for _ in range(8)]
            rig.until(lambda: caller.in_flight() == 8, what="eight requests are in flight")
            rig.until(lambda: len(rig.waiting_backends(stopped.database_url)) == 2, what="both sessions wait")
        assert [one.result().status_code for one in running] == [201] * 8
    assert caller.in_flight() == 0


def test_a_stop_waits_for_what_is_in_flight(service: Service) -> None:
    caller = service.caller()
    assert service.process is not None
    with ThreadPoolExecutor(1) as pool:
        with rig.no_commits(service.database_url):
            first = pool.submit(caller.charge, "key-1")
            rig.until(lambda: caller.in_flight() == 1, what="it is in flight")
            service.process.terminate()
            with pytest.raises(subprocess.TimeoutExpired):
                service.process.wait(0.5)
        assert first.result().status_code == 201
    assert service.process.wait(rig.SECONDS_MAX) == 0
    service.start()
    assert len(caller.effects()) == 1

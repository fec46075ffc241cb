"""The payments and control clients against a server that does as the test says."""

from __future__ import annotations

import json
import pickle
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Queue

import pytest

from killpoint_worker import PaymentsClient, PaymentsRefused, PaymentsUnavailable, Receipt
from killpoint_worker.control import ControlClient, ControlRefused, ParkedTooLong


@dataclass
class Server:
    """Takes one request a connection and gives the next answer; None closes the connection without one."""

    url: str
    answers: Queue[bytes | None] = field(default_factory=Queue)
    requests: Queue[bytes] = field(default_factory=Queue)

    def answer(self, status: int, document: object, **headers: str) -> None:
        body = json.dumps(document).encode()
        lines = [f"HTTP/1.1 {status} -", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.answers.put("\r\n".join([*lines, "", ""]).encode() + body)

    def hang_up(self) -> None:
        self.answers.put(None)


@pytest.fixture
def server() -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        state = Server(f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread = threading.Thread(target=serve, args=(listener, state), daemon=True)
        thread.start()
        yield state
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def serve(listener: socket.socket, state: Server) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            state.requests.put(whole_request(connection))
            answer = state.answers.get()
            if answer is not None:
                connection.sendall(answer)


def whole_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(
        next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")).split(b":")[1]
    )
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def charge(server: Server, key: str | None = "k1") -> Receipt:
    return PaymentsClient(server.url, "t", timeout_seconds=5).charge(order="o1", amount=4900, currency="EUR", key=key)


def test_a_charge_comes_back_as_a_receipt(server: Server) -> None:
    server.answer(201, {"id": "ch_1"})
    assert charge(server) == Receipt("ch_1", replayed=False)
    request = server.requests.get()
    assert b"POST /v1/charges" in request
    assert b"Idempotency-Key: k1" in request
    assert b"Authorization: Bearer t" in request


def test_without_a_key_no_header_is_sent(server: Server) -> None:
    server.answer(201, {"id": "ch_1"})
    charge(server, key=None)
    assert b"idempotency-key" not in server.requests.get().lower()


def test_a_replay_is_told(server: Server) -> None:
    server.answer(201, {"id": "ch_1"}, Idempotent_Replayed="true")
    assert charge(server) == Receipt("ch_1", replayed=True)


def test_sent_is_after_the_whole_request_arrived_and_before_any_answer_exists(server: Server) -> None:
    seen: list[bytes] = []

    def sent() -> None:
        # The server has the whole request by now without an answer being given: only then one is put out.
        seen.append(server.requests.get(timeout=5))
        server.answer(201, {"id": "ch_1"})

    client = PaymentsClient(server.url, "t", timeout_seconds=5)
    receipt = client.charge(order="o1", amount=4900, currency="EUR", key="k1", on_sent=sent)
    assert receipt.id == "ch_1"
    assert seen[0].endswith(b'{"order": "o1", "amount": 4900, "currency": "EUR"}')


def test_a_refusal_has_its_status_and_code(server: Server) -> None:
    server.answer(422, {"code": "idempotency-key-reused", "detail": "another payload"})
    with pytest.raises(PaymentsRefused, match="another payload") as caught:
        charge(server)
    assert (caught.value.status, caught.value.code) == (422, "idempotency-key-reused")
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert str(copy) == str(caught.value)


@pytest.mark.parametrize(("status", "document"), [(503, {}), (500, {"code": "x"}), (201, {}), (201, [1])])
def test_an_answer_that_does_not_say_it_was_done_is_unavailability(
    server: Server, status: int, document: object
) -> None:
    server.answer(status, document)
    with pytest.raises(PaymentsUnavailable):
        charge(server)


def test_a_connection_that_breaks_after_the_request_is_unavailability(server: Server) -> None:
    server.hang_up()
    with pytest.raises(PaymentsUnavailable, match="RemoteDisconnected"):
        charge(server)


def test_an_answer_that_does_not_come_is_unavailability_within_the_timeout(server: Server) -> None:
    client = PaymentsClient(server.url, "t", timeout_seconds=0.2)
    with pytest.raises(PaymentsUnavailable, match="timed out"):
        client.charge(order="o1", amount=1, currency="EUR", key=None)
    server.hang_up()


def test_nobody_there_is_unavailability() -> None:
    with unused_address() as url, pytest.raises(PaymentsUnavailable, match="ConnectionRefusedError"):
        PaymentsClient(url, "t").notify(order="o1", kind="finalize")


@contextmanager
def unused_address() -> Iterator[str]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def control(server: Server) -> ControlClient:
    return ControlClient(server.url, "t", attempt="a/0.1", sleep=lambda _: None)


@pytest.mark.parametrize("do", ["go", "die"])
def test_a_parked_attempt_gets_its_answer(server: Server, do: str) -> None:
    server.answer(200, {"do": do})
    assert control(server).park("charge.after", 1) == do
    request = server.requests.get()
    assert b"POST /v1/attempts/a%2F0.1/parked" in request
    assert request.endswith(b'{"point": "charge.after", "occurrence": 1}')


def test_a_parked_attempt_asks_again_when_it_is_left_without_a_decision(server: Server) -> None:
    server.hang_up()
    server.answer(503, {})
    server.answer(200, {"do": "wait"})
    server.answer(200, {"do": "go"})
    assert control(server).park("charge.after", 1) == "go"
    assert server.requests.qsize() == 4


@pytest.mark.parametrize(("status", "document"), [(404, {}), (200, {"do": "explode"}), (200, {})])
def test_an_answer_that_makes_no_sense_ends_the_waiting(server: Server, status: int, document: object) -> None:
    server.answer(status, document)
    with pytest.raises(ControlRefused, match=r"charge\.after"):
        control(server).park("charge.after", 1)


def test_the_patience_of_a_parked_attempt_is_bounded() -> None:
    times = iter(range(100))
    with unused_address() as url:
        client = ControlClient(
            url, "t", attempt="a", patience_seconds=5, sleep=lambda _: None, clock=lambda: float(next(times))
        )
        with pytest.raises(ParkedTooLong, match="5 s"):
            client.park("charge.after", 1)

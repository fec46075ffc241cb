"""Starting: migrations, and what is said of a configuration that cannot work."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from pathlib import Path

import psycopg
import pytest

from tests.integration.payments import rig
from tests.integration.payments.rig import Service

pytestmark = pytest.mark.integration

PASSWORD = "password-that-nobody-may-print"
SECRETS = (rig.SIGNING_KEY, rig.ADMIN_TOKEN, PASSWORD)
NOBODY_LISTENS = f"postgresql://payments:{PASSWORD}@127.0.0.1:1/payments"


def run(*arguments: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
    """The service's command with a working environment but for ``changes``; None takes a variable away."""
    variables = rig.environment(NOBODY_LISTENS) | {name: value for name, value in changes.items() if value is not None}
    for name in [name for name, value in changes.items() if value is None]:
        del variables[name]
    return subprocess.run(
        rig.command(*arguments), env=variables, capture_output=True, text=True, timeout=rig.SECONDS_MAX, check=False
    )


def said(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on standard error, which is all that was printed and gives no secret away."""
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("killpoint-payments: ")
    assert not any(secret in line for secret in SECRETS)
    return line


def applied(database_url: str) -> list[int]:
    with psycopg.connect(database_url) as connection:
        if connection.execute("SELECT to_regclass('migrations')").fetchone() == (None,):
            return []
        return [int(str(number)) for (number,) in connection.execute("SELECT number FROM migrations ORDER BY number")]


def test_migrating_twice_changes_nothing(database_url: str) -> None:
    first, second = (run("migrate", KILLPOINT_PAYMENTS_DATABASE_URL=database_url) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout == "applied: 0001_ledger, 0002_commit\n"
    assert second.stdout == "nothing to apply\n"
    assert applied(database_url) == [1, 2]


def test_four_processes_that_migrate_at_once_do_it_once(database_url: str) -> None:
    processes = [
        subprocess.Popen(
            rig.command("migrate"), env=rig.environment(database_url), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(4)
    ]
    outputs = sorted(process.communicate(timeout=rig.SECONDS_MAX) for process in processes)
    assert [process.returncode for process in processes] == [0] * 4
    assert outputs == [(b"applied: 0001_ledger, 0002_commit\n", b"")] + [(b"nothing to apply\n", b"")] * 3
    assert applied(database_url) == [1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("INSERT INTO migrations (number, name, digest) VALUES (9999, 'later', '')", "migration 9999"),
        ("UPDATE migrations SET digest = 'other' WHERE number = 1", "migration 0001 was applied"),
    ],
)
def test_a_database_of_another_version_is_left_alone(database_url: str, change: str, message: str) -> None:
    run("migrate", KILLPOINT_PAYMENTS_DATABASE_URL=database_url)
    with psycopg.connect(database_url) as connection:
        connection.execute(change.encode())
    refused = run("serve", KILLPOINT_PAYMENTS_DATABASE_URL=database_url)
    assert refused.returncode == 3
    assert message in said(refused)


@pytest.mark.parametrize(
    "name",
    ["KILLPOINT_PAYMENTS_DATABASE_URL", "KILLPOINT_PAYMENTS_SIGNING_KEY", "KILLPOINT_PAYMENTS_ADMIN_TOKEN"],
)
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_variable_is_named(name: str, value: str | None) -> None:
    refused = run("serve", **{name: value})
    assert refused.returncode == 2
    assert f"{name} is not set" in said(refused)


@pytest.mark.parametrize("url", [f"rubbish {PASSWORD}", f"postgresql://payments:{PASSWORD}@[/x", f"a={PASSWORD}"])
def test_an_address_that_cannot_be_read_is_not_printed(url: str) -> None:
    refused = run("serve", KILLPOINT_PAYMENTS_DATABASE_URL=url)
    assert refused.returncode == 2
    assert "KILLPOINT_PAYMENTS_DATABASE_URL cannot be read" in said(refused)


@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_a_database_that_does_not_answer_is_named_without_its_password(command: str) -> None:
    refused = run(command, KILLPOINT_PAYMENTS_DATABASE_URL=NOBODY_LISTENS)
    assert refused.returncode == 3
    assert "does not answer" in said(refused)
    assert "127.0.0.1" in said(refused)


def test_a_database_that_does_not_exist_is_named(server: str) -> None:
    refused = run("serve", KILLPOINT_PAYMENTS_DATABASE_URL=server.replace("/postgres?", "/nowhere?"))
    assert refused.returncode == 3
    assert "nowhere" in said(refused)


def test_a_role_that_may_not_make_tables_is_told_so(server: str, database_url: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS may_nothing")
        connection.execute("CREATE ROLE may_nothing LOGIN")
    refused = run("serve", KILLPOINT_PAYMENTS_DATABASE_URL=database_url.replace("//postgres:", "//may_nothing:"))
    assert refused.returncode == 3
    assert "cannot be migrated: permission denied" in said(refused)


@pytest.mark.parametrize("option", ["--port", "--admin-port"])
def test_a_port_that_is_taken_is_named(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = run("serve", option, str(port))
    assert refused.returncode == 3
    assert f"port {port} of 127.0.0.1 cannot be had" in said(refused)


@pytest.mark.parametrize("arguments", [["--port", "70000"], ["--connections", "0"], ["--connections", "many"]])
def test_an_option_out_of_bounds_is_a_usage_error(arguments: list[str]) -> None:
    refused = run("serve", *arguments)
    assert refused.returncode == 2
    assert "is not a number from" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_ready_file_that_cannot_be_written_is_named(database_url: str) -> None:
    refused = run("serve", "--ready-file", "/nowhere/ready.json", KILLPOINT_PAYMENTS_DATABASE_URL=database_url)
    assert refused.returncode == 3
    assert "/nowhere/ready.json" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_ready_file_says_where_and_who(service: Service) -> None:
    assert service.process is not None
    told = json.loads(service.ready_file.read_text())
    assert told == {
        "port": service.port,
        "admin_port": service.admin_port,
        "pid": service.process.pid,
        "boot": service.boots[0],
    }


def test_a_service_that_is_told_to_stop_while_it_starts_stops(stopped: Service) -> None:
    """An earlier boot's session holds it up; SIGTERM does not have to wait for that."""
    with psycopg.connect(stopped.database_url, application_name="killpoint-payments/earlier"):
        stopped.launch()
        rig.until(lambda: applied(stopped.database_url) == [1, 2], what="it has migrated")
        time.sleep(0.2)
        assert not stopped.exited
        assert stopped.stop() == 0
    assert not stopped.ready_file.exists()


def test_what_the_service_prints_gives_no_secret_away(service: Service, tmp_path: Path) -> None:
    caller = service.caller()
    sent = caller.token()
    caller.charge("key-1")
    caller.charge("key-1", amount=-1)
    with caller.client() as client:
        client.get("/v1/charges", params={"order": "order-1"}, headers={"Authorization": f"Bearer {sent}x"})
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(f"rubbish {sent}\r\n\r\n".encode())
        connection.recv(4096)
    assert service.stop() == 0
    printed = service.output.read_text()
    assert "listens on 127.0.0.1" in printed
    assert not any(secret in printed for secret in (*SECRETS, sent))
    assert tmp_path in service.output.parents

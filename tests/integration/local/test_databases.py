"""Who may connect to which database, and what is said when Postgres does not do as it is asked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from killpoint.databases import dsn as dsns
from killpoint.databases.administration import HARNESS_CONNECTIONS, JOURNAL, PAYMENTS, Databases, experiment_database
from killpoint.databases.errors import PostgresRefused, PostgresUnreachable
from killpoint.databases.server import Server, connect, given_postgres

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


async def test_an_experiments_role_sees_its_own_database_only(server: Server, journal: str) -> None:
    async with Databases(server) as all_of_them:
        services = [await all_of_them.ensure_service(name) for name in (JOURNAL, PAYMENTS)]
        other = await all_of_them.ensure_experiment(f"{journal}-other")
        own = await all_of_them.ensure_experiment(journal)
        async with await connect(own.for_attempt("a.1.1")) as connection:
            await connection.execute("CREATE TABLE mine (id int)")
        forbidden = [dsns.parse(dsn)["dbname"] for dsn in (*services, other.dsn)] + ["postgres", "template1"]
        for name in forbidden:
            with pytest.raises(PostgresRefused, match="permission denied for database"):
                await connect(dsns.with_database(own.dsn, name))
        await all_of_them.drop_experiment(f"{journal}-other")
        await all_of_them.drop_experiment(journal)


async def test_an_experiments_role_may_create_nothing_outside_and_has_a_limit(server: Server, journal: str) -> None:
    async with Databases(server) as all_of_them:
        own = await all_of_them.ensure_experiment(journal)
        async with await connect(own.dsn) as connection:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await connection.execute("CREATE DATABASE elsewhere")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await connection.execute("CREATE ROLE somebody")
            cursor = await connection.execute("SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user")
            assert await cursor.fetchone() == (server.connections_max - HARNESS_CONNECTIONS,)
        await all_of_them.drop_experiment(journal)


async def test_a_database_keeps_the_note_on_whose_it_is_until_it_is_dropped(server: Server, journal: str) -> None:
    note = f"it's {journal}"
    async with Databases(server) as all_of_them:
        await all_of_them.ensure_experiment(f"{journal}-other")
        for _ in range(2):
            await all_of_them.ensure_experiment(journal, note=note)
        assert list(await all_of_them.notes()).count(note) == 1
        await all_of_them.drop_experiment(f"{journal}-other")
        await all_of_them.drop_experiment(journal)
        assert note not in await all_of_them.notes()


async def test_a_services_role_comes_in_by_the_password_that_it_was_last_given(server: Server, journal: str) -> None:
    name = experiment_database(journal)  # a name that nobody else has, and that can be dropped
    async with Databases(server) as all_of_them:
        former = await all_of_them.ensure_owned(name, "former")
        given = await all_of_them.ensure_owned(name, "given")
        async with await connect(given) as connection:
            await connection.execute("CREATE TABLE mine (id int)")
        with pytest.raises(PostgresRefused, match="refuses the login"):
            await connect(former)
        await all_of_them.drop_experiment(journal)


async def test_everything_may_be_done_again_and_at_once(server: Server, journal: str) -> None:
    async with Databases(server) as one, Databases(server) as other:
        dsns_of_services = await asyncio.gather(*(all_.ensure_service(PAYMENTS) for all_ in (one, other)))
        await asyncio.gather(one.ensure_experiment(journal), other.ensure_experiment(journal))
        last = await one.ensure_experiment(journal)
        async with await connect(last.dsn):
            pass
        await asyncio.gather(one.drop_experiment(journal), other.drop_experiment(journal))
        await one.drop_experiment(journal)

    assert len(set(dsns_of_services)) == 1


async def test_a_new_password_shuts_out_who_had_the_old_one(server: Server, journal: str) -> None:
    async with Databases(server) as all_of_them:
        old = await all_of_them.ensure_experiment(journal)
        await all_of_them.ensure_experiment(journal)
        with pytest.raises(PostgresRefused, match="refuses the login"):
            await connect(old.dsn)
        await all_of_them.drop_experiment(journal)


async def test_sessions_are_counted_in_their_database_only(server: Server, journal: str) -> None:
    """Attempts of two runs may have the same name."""
    async with Databases(server) as all_of_them:
        own = await all_of_them.ensure_experiment(journal)
        other = await all_of_them.ensure_experiment(f"{journal}-other")
        async with await connect(own.for_attempt("a.1.1")), await connect(own.for_attempt("a.1.1")):
            assert await all_of_them.sessions(own.name, ["a.1.1", "a.1.2"]) == {"a.1.1": 2, "a.1.2": 0}
            assert await all_of_them.sessions(other.name, ["a.1.1"]) == {"a.1.1": 0}
        await all_of_them.drop_experiment(journal)
        await all_of_them.drop_experiment(f"{journal}-other")


async def test_a_broken_connection_is_opened_again(server: Server, journal: str) -> None:
    async with Databases(server) as all_of_them:
        own = await all_of_them.ensure_experiment(journal)
        async with await connect(server.admin) as connection:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                " AND usename = current_user AND backend_type = 'client backend'"
            )
        with pytest.raises(PostgresUnreachable):
            await all_of_them.sessions(own.name, ["a.1.1"])
        assert await all_of_them.sessions(own.name, ["a.1.1"]) == {"a.1.1": 0}
        await all_of_them.drop_experiment(journal)


async def test_a_given_login_without_superuser_is_enough(server: Server, journal: str) -> None:
    """The roles that a hosted Postgres gives have CREATEDB and CREATEROLE, no more."""
    async with _login(server, f"login_{journal}", "CREATEDB", "CREATEROLE") as dsn:
        given = await given_postgres(dsn)
        async with Databases(given) as all_of_them:
            own = await all_of_them.ensure_experiment(journal)
            async with await connect(own.for_attempt("a.1.1")):
                assert await all_of_them.sessions(own.name, ["a.1.1"]) == {"a.1.1": 1}
            await all_of_them.drop_experiment(journal)

    assert given.embedded is False
    assert experiment_database(journal) == own.name


async def test_a_login_without_the_right_to_create_is_told_what_it_lacks(server: Server, journal: str) -> None:
    async with _login(server, f"login_{journal}", "CREATEROLE") as dsn:
        with pytest.raises(PostgresRefused) as refused:
            await given_postgres(dsn)

    assert "lacks CREATEDB" in str(refused.value)
    assert f'ALTER ROLE "login_{journal}" CREATEDB;' in str(refused.value)


async def test_a_wrong_password_is_said_and_not_shown(server: Server) -> None:
    wrong = dsns.build({**dsns.parse(server.admin), "password": "s3cret-word"})
    with pytest.raises(PostgresRefused, match="refuses the login") as refused:
        await given_postgres(wrong)
    assert "s3cret-word" not in str(refused.value)


async def test_a_server_that_is_not_there_is_said_with_its_place() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(PostgresUnreachable, match=f"127.0.0.1:{port}.*does not answer") as away:
            await given_postgres(f"postgresql://me:s3cret-word@127.0.0.1:{port}/db?connect_timeout=2")
    assert "s3cret-word" not in str(away.value)


@asynccontextmanager
async def _login(server: Server, name: str, *rights: LiteralString) -> AsyncIterator[str]:
    """The DSN of a role that is on the server for as long as a test needs it."""
    role = sql.Identifier(name)
    words = sql.SQL(" ").join(sql.SQL(right) for right in rights)
    async with await connect(server.admin) as connection:
        await connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'word' {}").format(role, words))
        await connection.execute(sql.SQL("GRANT CONNECT ON DATABASE postgres TO {}").format(role))
        yield dsns.with_login(server.admin, user=name, password="word", database="postgres")
        await connection.execute(sql.SQL("REVOKE CONNECT ON DATABASE postgres FROM {}").format(role))
        await connection.execute(sql.SQL("DROP ROLE {}").format(role))

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from killpoint.databases import dsn as dsns
from killpoint.databases.errors import PostgresRefused

texts = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=12)


@given(user=texts, password=texts, dbname=texts)
def test_what_is_built_is_read_back_by_libpq(user: str, password: str, dbname: str) -> None:
    parts = {"host": "db.example", "port": "5433", "user": user, "password": password, "dbname": dbname}
    assert conninfo_to_dict(dsns.build(parts)) == parts


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "/var/run/postgresql", "@abstract"])
def test_every_kind_of_host_survives(host: str) -> None:
    parts = {"host": host, "port": "5432", "user": "me", "dbname": "db"}
    assert conninfo_to_dict(dsns.build(parts)) == parts


@given(password=texts.filter(lambda word: len(word) > 3))
def test_a_masked_dsn_has_no_password_in_it(password: str) -> None:
    shown = dsns.masked(dsns.build({"host": "h", "port": "1", "user": "u", "password": password, "dbname": "d"}))
    assert shown == "postgresql://u@h:1/d"


@pytest.mark.parametrize(
    "dsn",
    [
        "host=h port=1 user=u password=hidden dbname=d sslpassword=hidden passfile=/hidden",
        "postgresql://u:hidden@h:1/d?sslpassword=hidden&options=-chidden",
    ],
)
def test_only_the_place_the_role_and_the_database_are_shown(dsn: str) -> None:
    assert dsns.masked(dsn) == "postgresql://u@h:1/d"


@pytest.mark.parametrize("dsn", ["hidden word", "postgresql://u:hidden@[h", "postgresql://u:hidden@h/d?nonsense=1"])
def test_what_cannot_be_read_is_refused_without_being_shown(dsn: str) -> None:
    with pytest.raises(PostgresRefused) as refused:
        dsns.parse(dsn)
    assert "hidden" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert dsns.masked(dsn) == "(a DSN that cannot be read)"


def test_another_login_keeps_what_concerns_the_server_and_nothing_of_the_first_login() -> None:
    admin = (
        "postgresql://admin:secret@h:1/postgres?sslmode=verify-full&sslrootcert=/ca.pem&sslkey=/admin.key&options=-cx"
    )
    worker = conninfo_to_dict(dsns.with_login(admin, user="run", password="word", database="run"))
    assert worker == {
        "host": "h", "port": "1", "user": "run", "password": "word", "dbname": "run",
        "sslmode": "verify-full", "sslrootcert": "/ca.pem",
    }  # fmt: skip


def test_an_application_name_is_set() -> None:
    assert conninfo_to_dict(dsns.with_application("postgresql://h/d", "a.1.1"))["application_name"] == "a.1.1"


@pytest.mark.parametrize(
    ("place", "reached"),
    [
        ("db.killpoint.svc:6432", "postgresql://u:p@db.killpoint.svc:6432/d?sslmode=require"),
        ("db.killpoint.svc", "postgresql://u:p@db.killpoint.svc:5432/d?sslmode=require"),
        ("[fd00::1]:5433", "postgresql://u:p@[fd00::1]:5433/d?sslmode=require"),
    ],
)
def test_a_server_may_be_reached_at_another_place(place: str, reached: str) -> None:
    assert dsns.with_place("postgresql://u:p@127.0.0.1:5555/d?sslmode=require", place) == reached


@pytest.mark.parametrize("place", ["", "a:b:c", "user@host:1", "host:port"])
def test_what_is_no_place_is_refused(place: str) -> None:
    with pytest.raises(ValueError, match="is no host and port"):
        dsns.with_place("postgresql://u:p@127.0.0.1/d", place)

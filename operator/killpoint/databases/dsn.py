"""DSNs: taken apart, put together, and shown without what is secret in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from killpoint.databases.errors import PostgresRefused

_SHARED = ("sslmode", "sslrootcert", "sslnegotiation", "channel_binding", "gssencmode", "target_session_attrs")
"""What one login's DSN says of the server rather than of the login: it holds for every role."""


_PLACE = re.compile(r"^(\[(?P<address>[0-9a-fA-F:.]+)\]|(?P<name>[^:/@\[\]]+))(:(?P<port>[0-9]+))?$")


def parse(dsn: str) -> dict[str, str]:
    """The parts of a DSN, URL or key-value. Raises PostgresRefused, without the DSN's text in it."""
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:
        # libpq quotes the text that it could not read, password and all.
        raise PostgresRefused(
            "the DSN cannot be read",
            remedy="Write it as postgresql://role:password@host:port/database.",
        ) from None
    return {name: str(value) for name, value in parts.items() if value is not None}


def masked(dsn: str) -> str:
    """Server, port, database and role of a DSN: what a message may show."""
    try:
        parts = parse(dsn)
    except PostgresRefused:
        return "(a DSN that cannot be read)"
    return build({name: parts[name] for name in ("host", "port", "user", "dbname") if name in parts})


def build(parts: Mapping[str, str]) -> str:
    """A DSN as a URL, which is what every driver in every language reads.

    A server on a Unix socket has its folder in ``host``, as the query's parameter.
    """
    rest = {name: value for name, value in parts.items() if name not in ("host", "port", "user", "password", "dbname")}
    host = parts.get("host", "")
    if host.startswith(("/", "@")):
        rest = {"host": host, **({"port": parts["port"]} if "port" in parts else {}), **rest}
        where = ""
    else:
        where = f"[{host}]" if ":" in host else quote(host, safe="")
        where += f":{parts['port']}" if "port" in parts else ""
    login = quote(parts.get("user", ""), safe="")
    login += f":{quote(parts['password'], safe='')}" if parts.get("password") else ""
    query = f"?{urlencode(rest, quote_via=quote, safe='/')}" if rest else ""
    return f"postgresql://{login}{'@' if login else ''}{where}/{quote(parts.get('dbname', ''), safe='')}{query}"


def with_database(dsn: str, database: str) -> str:
    """The same login, another database."""
    return build({**parse(dsn), "dbname": database})


def with_login(dsn: str, *, user: str, password: str, database: str) -> str:
    """Another role on the same server: of the given DSN only what concerns the server is kept."""
    parts = parse(dsn)
    shared = {name: parts[name] for name in ("host", "port", *_SHARED) if name in parts}
    return build({**shared, "user": user, "password": password, "dbname": database})


def with_place(dsn: str, place: str) -> str:
    """The same login and database as they are reached from elsewhere: at ``host``, ``host:port`` or ``[::1]:port``."""
    found = _PLACE.match(place)
    if found is None:
        raise ValueError(f"{place!r} is no host and port of a database server")
    parts = {name: value for name, value in parse(dsn).items() if name not in ("host", "port", "hostaddr")}
    return build({**parts, "host": found["name"] or found["address"], "port": found["port"] or "5432"})


def with_application(dsn: str, name: str) -> str:
    """The same DSN, with the name by which the server shows its sessions."""
    return build({**parse(dsn), "application_name": name})

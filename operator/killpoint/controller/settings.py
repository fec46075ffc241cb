"""Settings: what the operator is started with, read from the environment once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

NEEDED = {
    "KILLPOINT_DATABASE_URL": "a Postgres login that may create databases and roles, postgresql://role:password@host/db",
    "KILLPOINT_SIGNING_KEY": "the key that attempt tokens are signed with, the same as payments' and control's",
    "KILLPOINT_PAYMENTS_URL": "where workers reach the payments service, http://host:port",
    "KILLPOINT_PAYMENTS_ADMIN_URL": "where the operator reads its ledger, http://host:port",
    "KILLPOINT_PAYMENTS_ADMIN_TOKEN": "the token of the payments service's admin port",
    "KILLPOINT_IMAGES": 'the image of each workload, {"langgraph": "registry/killpoint-langgraph:1"}',
}
EVERYWHERE = "*"
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
PORT_MAX = 65_535
_SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?:[a-z0-9]([-a-z0-9]*[a-z0-9])?")


class SettingsError(Exception):
    """The environment lacks something, or holds what cannot be; the message names every such variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the operator is started with."""

    database_url: str = field(repr=False)
    signing_key: str = field(repr=False)
    payments_url: str
    payments_admin_url: str
    payments_admin_token: str = field(repr=False)
    images: Mapping[str, str]
    """Workload → image."""
    control_url: str | None = None
    """Where workers park; without it no cell can be about delete-pod, evict or freeze."""
    control_database_url: str | None = field(repr=False, default=None)
    """Where control keeps who is parked; None: in the journal's database."""
    worker_database_host: str | None = None
    """host:port of the database as pods reach it; None: as the operator does."""
    pull_policy: str = "IfNotPresent"
    namespaces: tuple[str, ...] = ()
    """Where experiments are looked after; empty: in all of the cluster."""
    namespace: str = "default"
    """The operator's own: its lease is there."""
    identity: str
    """Which operator this is, in its lease."""
    experiments_max: int = 16
    """How many experiments run at once; each holds a connection to the journal."""
    probes_port: int | None = 8080
    """None: no probes are answered."""
    evidence_port: int | None = None
    """Where evidence is served; None: nowhere."""
    evidence_service: str | None = None
    """The Service that leads there, name:port; None: no status can say where evidence is."""
    log_level: str = "INFO"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], *, own_namespace: str | None, identity: str) -> Settings:
        """``own_namespace``: what the service account's files say, if there are any. Raises SettingsError."""
        reader = _Reader(environ)
        namespace = environ.get("KILLPOINT_POD_NAMESPACE") or own_namespace or "default"
        named = tuple(dict.fromkeys(reader.words("KILLPOINT_NAMESPACES"))) or (namespace,)
        if EVERYWHERE in named and len(named) > 1:
            reader.wrong("KILLPOINT_NAMESPACES", "either namespaces, or * alone")
        settings = cls(
            database_url=reader.text("KILLPOINT_DATABASE_URL"),
            signing_key=reader.text("KILLPOINT_SIGNING_KEY"),
            payments_url=reader.text("KILLPOINT_PAYMENTS_URL"),
            payments_admin_url=reader.text("KILLPOINT_PAYMENTS_ADMIN_URL"),
            payments_admin_token=reader.text("KILLPOINT_PAYMENTS_ADMIN_TOKEN"),
            images=reader.images("KILLPOINT_IMAGES"),
            control_url=environ.get("KILLPOINT_CONTROL_URL") or None,
            control_database_url=environ.get("KILLPOINT_CONTROL_DATABASE_URL") or None,
            worker_database_host=environ.get("KILLPOINT_WORKER_DATABASE_HOST") or None,
            pull_policy=reader.one_of("KILLPOINT_IMAGE_PULL_POLICY", PULL_POLICIES, default="IfNotPresent"),
            namespaces=() if named == (EVERYWHERE,) else named,
            namespace=namespace,
            identity=identity,
            experiments_max=reader.number("KILLPOINT_EXPERIMENTS_MAX", default=16, least=1, most=1000),
            probes_port=reader.number("KILLPOINT_PROBES_PORT", default=8080, least=0, most=PORT_MAX) or None,
            evidence_port=reader.number("KILLPOINT_EVIDENCE_PORT", default=0, least=0, most=PORT_MAX) or None,
            evidence_service=reader.service("KILLPOINT_EVIDENCE_SERVICE"),
            log_level=reader.one_of("KILLPOINT_LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR"), default="INFO"),
        )
        if reader.problems:
            raise SettingsError("\n".join(reader.problems))
        return settings


class _Reader:
    """Reads variables, and collects what is wrong with them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.problems: list[str] = []

    def wrong(self, name: str, expected: str) -> None:
        self.problems.append(f"{name}: expected {expected}")

    def text(self, name: str) -> str:
        value = self._environ.get(name, "").strip()
        if not value:
            self.problems.append(f"{name} is not set: set it to {NEEDED[name]}")
        return value

    def words(self, name: str) -> list[str]:
        return [word for part in self._environ.get(name, "").split(",") if (word := part.strip())]

    def one_of(self, name: str, words: tuple[str, ...], *, default: str) -> str:
        value = self._environ.get(name) or default
        if value not in words:
            self.wrong(name, f"one of {', '.join(words)}, not {value!r}")
        return value

    def number(self, name: str, *, default: int, least: int, most: int) -> int:
        value = self._environ.get(name) or str(default)
        if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
            self.wrong(name, f"a whole number from {least} to {most}, not {value!r}")
            return default
        return int(value)

    def service(self, name: str) -> str | None:
        value = self._environ.get(name) or None
        if value is not None and _SERVICE.fullmatch(value) is None:
            self.wrong(name, f"a Service of the operator's namespace and its port, name:port, not {value!r}")
        return value

    def images(self, name: str) -> Mapping[str, str]:
        text = self.text(name)
        if not text:
            return MappingProxyType({})
        try:
            images = json.loads(text)
        except ValueError:
            images = None
        if not isinstance(images, dict) or not images or not all(_is_text(image) for image in images.values()):
            self.wrong(name, NEEDED[name])
            return MappingProxyType({})
        return MappingProxyType(images)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())

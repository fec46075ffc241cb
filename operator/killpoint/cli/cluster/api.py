"""The API server, as a kubeconfig leads to it: ``experiments.Experiments`` with the Kubernetes client, an extra."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from killpoint.api.v1alpha1.spec import API_VERSION
from killpoint.cli.cluster.experiments import Document
from killpoint.cli.cluster.refusals import stop_for
from killpoint.cli.cluster.target import Target
from killpoint.cli.exits import Exit, Stop
from killpoint.kubernetes.client import ApiRefused, Cluster

FIELD_MANAGER = "killpoint-cli"
PLURAL = "crashexperiments"
RENEW_SECONDS = 60.0
"""How often the credentials are looked at: those that a plugin issues expire."""
DOWNLOAD_SECONDS_MAX = 60.0
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_GONE = 404
_CONFLICT = 409
_BROKEN = (config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, KeyError)
"""What reading a kubeconfig that is none ends in."""


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[ClusterExperiments]:
    """A connection with the credentials of the kubeconfig, kept fresh. Raises Stop where there are none."""
    configuration = Configuration()
    paths = _kubeconfig(target)
    if not any(path.is_file() for path in paths) and _is_in_pod(target):
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        own = (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
        async with ApiClient(configuration) as api:
            yield ClusterExperiments(api, target.namespace or own, target)
        return
    loader = await _loaded(target, paths, configuration)
    async with ApiClient(configuration) as api:
        renewing = asyncio.create_task(_renew(loader, configuration))
        try:
            yield ClusterExperiments(api, target.namespace or _namespace_of(loader), target)
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)


def _kubeconfig(target: Target) -> Sequence[Path]:
    """The files, as kubectl looks for them."""
    if target.kubeconfig is not None:
        return [target.kubeconfig]
    named = [Path(part).expanduser() for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return named or [Path("~/.kube/config").expanduser()]


def _is_in_pod(target: Target) -> bool:
    return target.kubeconfig is None and target.context is None and (SERVICE_ACCOUNT / "token").is_file()


async def _loaded(target: Target, paths: Sequence[Path], configuration: Configuration) -> Any:  # noqa: ANN401 - untyped
    named = os.pathsep.join(map(str, paths))
    if not any(path.is_file() for path in paths):
        raise Stop(Exit.INVALID, f"there is no kubeconfig {named}: name one with --kubeconfig or KUBECONFIG")
    try:
        return await config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=named, context=target.context, client_configuration=configuration, persist_config=False
        )
    except _BROKEN as error:
        told = f"its context {target.context}" if target.context else "its current context"
        raise Stop(Exit.INVALID, f"kubeconfig {named} cannot be used, or {told} cannot: {error}") from error


def _namespace_of(loader: Any) -> str:  # noqa: ANN401 - untyped
    namespace = loader.current_context["context"].get("namespace")
    return namespace if isinstance(namespace, str) and namespace else "default"


async def _renew(loader: Any, configuration: Configuration) -> None:  # noqa: ANN401 - untyped
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        with suppress(*_BROKEN):  # the API server says soon enough what is wrong with credentials
            await loader.load_and_set(configuration)


class ClusterExperiments(Cluster):
    """The experiments of one namespace."""

    def __init__(self, api: ApiClient, namespace: str, target: Target) -> None:
        super().__init__(api, namespace)
        self._target = target

    def command(self, *words: str) -> str:
        return self._target.command(*words)

    async def is_known(self) -> bool:
        found = await self._ask("GET", f"/apis/{API_VERSION}", nothing=(_GONE,))
        return any(resource.get("name") == PLURAL for resource in (found or {}).get("resources") or ())

    async def get(self, name: str) -> Document | None:
        found: Document | None = await self._ask("GET", self._path(name), nothing=(_GONE,))
        return found

    async def list(self) -> list[Document]:
        found: list[Document] = (await self._ask("GET", self._path())).get("items") or []
        return found

    async def apply(self, document: Document) -> Document:
        query = [("fieldManager", FIELD_MANAGER), ("force", "true"), ("fieldValidation", "Strict")]
        path = self._path(str(document["metadata"]["name"]))
        stored: Document = await self._ask("PATCH", path, query=query, body=dict(document), content=_APPLY)
        return stored

    async def abort(self, name: str, uid: str) -> None:
        body = {"metadata": {"uid": uid}, "spec": {"abort": True}}
        query = [("fieldManager", FIELD_MANAGER)]
        path = self._path(name)
        # 409: there is another one of that name, so this one is gone.
        await self._ask("PATCH", path, query=query, body=body, content=_MERGE, nothing=(_GONE, _CONFLICT))

    async def delete(self, name: str, uid: str) -> None:
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        await self._ask("DELETE", self._path(name), body=body, nothing=(_GONE, _CONFLICT))

    async def read(self, location: str) -> bytes:
        try:
            return await self._send("GET", location, seconds=DOWNLOAD_SECONDS_MAX)
        except ApiRefused as refused:
            raise stop_for(refused.answer, f"GET {location}", self.namespace) from refused

    async def _ask(self, method: str, path: str, *, nothing: Sequence[int] = (), **more: Any) -> Any:  # noqa: ANN401
        """The answer's document; None for these codes. Raises Stop for any other refusal."""
        try:
            raw = await self._send(method, path, **more)
        except ApiRefused as refused:
            if refused.answer.code in nothing:
                return None
            raise stop_for(refused.answer, f"{method} {path}", self.namespace) from refused
        try:
            return json.loads(raw)
        except ValueError as error:
            message = (
                f"what answers {method} {path} is no API server: it sent no JSON. Is the kubeconfig's server right?"
            )
            raise Stop(Exit.NOT_EXECUTED, message) from error

    def _path(self, name: str = "") -> str:
        return f"/apis/{API_VERSION}/namespaces/{self.namespace}/{PLURAL}/{name}".rstrip("/")

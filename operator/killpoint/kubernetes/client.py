"""The API server as killpoint uses it: a few requests with plain documents, bounded in time, repeats and number.

Documents are passed as they are: the client library's models refuse fields of newer API versions.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import aiohttp
from kubernetes.aio.client import ApiClient

from killpoint.kubernetes.manifests import Manifest, eviction
from killpoint.kubernetes.refusals import Answer
from killpoint.ports import SubstrateUnavailableError

REQUEST_SECONDS_MAX = 10.0
LIST_SECONDS_MAX = 30.0
AT_ONCE = 8
"""Requests that one experiment has under way."""
TRIES = 3
PAUSE_SECONDS = 0.2
_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_GONE = 404
_CONFLICT = 409
_TOO_MANY = 429
_NOT_NOW = frozenset({401, 408, 502, 503, 504})
"""Not our request is at fault; 401: a token that was just renewed."""


class ApiRefused(Exception):
    """The API server took the request, and refuses it."""

    def __init__(self, answer: Answer, request: str) -> None:
        super().__init__(f"{request}: {answer.code} {answer.reason}: {answer.message}")
        self.answer = answer


class Cluster:
    """One namespace of a cluster. Every method raises SubstrateUnavailableError when nobody answers."""

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self._api = api
        self._core = f"/api/v1/namespaces/{namespace}"
        self._room = asyncio.Semaphore(AT_ONCE)
        self.namespace = namespace

    async def pods(self, selector: str) -> Sequence[Mapping[str, Any]]:
        """The pods with these labels, from the API server's cache: a moment old, so one may be missing."""
        query = [("labelSelector", selector), ("resourceVersion", "0")]
        found = await self._get(f"{self._core}/pods", query=query, seconds=LIST_SECONDS_MAX)
        pods: list[Mapping[str, Any]] = (found or {}).get("items") or []
        return pods

    async def pod(self, name: str) -> Mapping[str, Any] | None:
        """A pod as it is; None where there is none."""
        return await self._get(f"{self._core}/pods/{name}")

    async def create(self, manifest: Manifest) -> bool:
        """Make a pod or a secret. False: one of that name is there already. Raises ApiRefused."""
        plural = {"Pod": "pods", "Secret": "secrets"}[manifest["kind"]]
        try:
            await self._send("POST", f"{self._core}/{plural}", body=manifest)
        except ApiRefused as refused:
            if refused.answer.reason == "AlreadyExists":
                return False
            raise
        return True

    async def patch_pod(self, name: str, change: Manifest, *, strategic: bool = False) -> bool:
        """Merge a change into a pod. False: there is none."""
        content = _STRATEGIC if strategic else _MERGE
        return await self._done("PATCH", f"{self._core}/pods/{name}", body=change, content=content)

    async def delete_pod(self, name: str, *, uid: str, grace_seconds: int | None = None) -> None:
        """Delete this very pod; None: with its own grace. Nothing to delete is a success."""
        body: Manifest = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        # 409: there is another pod of that name, so ours is gone.
        await self._done("DELETE", f"{self._core}/pods/{name}", body=body, no_matter=(_CONFLICT,))

    async def evict_pod(self, name: str) -> bool:
        """Ask for a pod's eviction. False: there is none, or its disruption budget does not allow it now."""
        body = eviction(name=name, namespace=self.namespace)
        return await self._done("POST", f"{self._core}/pods/{name}/eviction", body=body, no_matter=(_TOO_MANY,))

    async def delete_secret(self, name: str) -> None:
        """Nothing to delete is a success."""
        await self._done("DELETE", f"{self._core}/secrets/{name}")

    async def delete_secrets(self, selector: str) -> None:
        """Delete the secrets with these labels. Raises ApiRefused."""
        await self._send("DELETE", f"{self._core}/secrets", query=[("labelSelector", selector)])

    async def last_lines(self, name: str, *, container: str, count: int, bytes_max: int) -> str:
        """The end of a container's output; empty where it cannot be read."""
        query = [("container", container), ("tailLines", str(count)), ("limitBytes", str(bytes_max))]
        try:
            raw = await self._send("GET", f"{self._core}/pods/{name}/log", query=query)
        except ApiRefused:
            return ""
        return raw.decode(errors="replace")

    async def _get(self, path: str, **more: Any) -> Mapping[str, Any] | None:  # noqa: ANN401 - passed on
        try:
            document = _document(await self._send("GET", path, **more))
        except ApiRefused as refused:
            if refused.answer.code == _GONE:
                return None
            raise SubstrateUnavailableError(str(refused)) from refused
        if document is None:
            raise SubstrateUnavailableError(f"GET {path}: what answers is no API server: no JSON object")
        return document

    async def _done(
        self,
        method: str,
        path: str,
        *,
        no_matter: Collection[int] = (),
        **more: Any,  # noqa: ANN401 - passed on
    ) -> bool:
        """Whether a change was made. A refusal that is none of these, or 404, is a fault of the installation."""
        try:
            await self._send(method, path, **more)
        except ApiRefused as refused:
            if refused.answer.code in {_GONE, *no_matter}:
                return False
            raise SubstrateUnavailableError(str(refused)) from refused
        return True

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: Manifest | None = None,
        content: str = "application/json",
        seconds: float = REQUEST_SECONDS_MAX,
    ) -> bytes:
        """One request, repeated when nobody answers: each of ours can be made twice with the same meaning."""
        fault = ""
        for number in range(TRIES):
            if number:
                await asyncio.sleep(PAUSE_SECONDS * 2**number)
            try:
                async with self._room, asyncio.timeout(seconds):
                    status, raw = await self._once(method, path, query=query, body=body, content=content)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                fault = f"{type(error).__name__}: {error}"
                continue
            if status < 400:  # noqa: PLR2004 - HTTP
                return raw
            answer = Answer.of(status, _document(raw), otherwise=raw[:300].decode(errors="replace"))
            if status not in _NOT_NOW and not _throttled(answer):
                raise ApiRefused(answer, f"{method} {path}")
            fault = f"{status} {answer.reason}: {answer.message}"
        raise SubstrateUnavailableError(f"the API server does not answer {method} {path}: {fault}")

    async def _once(
        self, method: str, path: str, *, query: Sequence[tuple[str, str]], body: Manifest | None, content: str
    ) -> tuple[int, bytes]:
        headers = {"Accept": "application/json, */*", "Content-Type": content}
        method, url, headers, sent, form = await self._api.param_serialize(
            method, path, query_params=list(query), header_params=headers, body=body, auth_settings=["BearerToken"]
        )
        response: Any = await self._api.call_api(method, url, headers, sent, form, LIST_SECONDS_MAX)
        return response.status, await response.read()


def _throttled(answer: Answer) -> bool:
    """Whether the API server is busy; a refused eviction has the same code and names a cause."""
    return answer.code == _TOO_MANY and "DisruptionBudget" not in answer.causes


def _document(raw: bytes) -> Mapping[str, Any] | None:
    try:
        document = json.loads(raw)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None

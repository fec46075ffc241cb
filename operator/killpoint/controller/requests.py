"""Requests of the operator's own: experiments, their status, Events, leases, and what is deleted by label."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubernetes.aio.client import ApiClient

from killpoint.api.v1alpha1.spec import API_VERSION, KIND
from killpoint.controller.subjects import PLURAL, Subject
from killpoint.kubernetes.client import ApiRefused, Cluster
from killpoint.kubernetes.manifests import Manifest
from killpoint.ports import SubstrateUnavailableError

Document = Mapping[str, Any]

FIELD_MANAGER = "killpoint"
_APPLY = "application/apply-patch+yaml"
_CONFLICT = 409
_GONE = 404


class Requests(Cluster):
    """One namespace, for what only the operator does. Raises as ``Cluster`` does.

    ``may_change``: asked right before each request that changes something. No API server compares an epoch, so whoever
    is no longer the operator has to know it by itself.
    """

    def __init__(self, api: ApiClient, namespace: str, *, may_change: Callable[[], bool] = lambda: True) -> None:
        super().__init__(api, namespace)
        self._may_change = may_change

    async def serves_experiments(self) -> bool:
        """Whether the API server knows CrashExperiment."""
        found = await self._get(f"/apis/{API_VERSION}")
        return any(resource.get("name") == PLURAL for resource in (found or {}).get("resources") or ())

    async def experiment(self, name: str) -> Document | None:
        return await self._get(self._experiment(name))

    async def apply_status(self, subject: Subject, status: Document, *, version: str) -> bool:
        """Put a status on an object that is still at this resource version. False: it is not. Raises ApiRefused."""
        body = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": subject.name, "namespace": subject.namespace, "resourceVersion": version},
            "status": status,
        }
        query = [("fieldManager", FIELD_MANAGER), ("force", "true")]
        path = f"{self._experiment(subject.name)}/status"
        return await self._unless("PATCH", path, query=query, body=body, content=_APPLY)

    async def delete_experiment(self, subject: Subject) -> None:
        """Delete this very object. Nothing to delete is a success."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": subject.uid}}
        await self._unless("DELETE", self._experiment(subject.name), body=body)

    async def create_event(self, event: Document) -> None:
        """Raises ApiRefused."""
        await self._send("POST", f"{self._core}/events", body=dict(event))

    async def version(self) -> str:
        """The API server's: v1.34.4."""
        found = await self._get("/version")
        return str((found or {}).get("gitVersion", ""))

    async def lease(self, name: str) -> Document | None:
        return await self._get(self._lease(name))

    async def create_lease(self, lease: Document) -> bool:
        """False: somebody was faster. Raises ApiRefused."""
        return await self._unless("POST", self._lease(""), body=dict(lease))

    async def update_lease(self, name: str, lease: Document) -> bool:
        """False: it is no longer at the resource version that the document names, or gone. Raises ApiRefused."""
        return await self._unless("PUT", self._lease(name), body=dict(lease))

    async def _once(
        self, method: str, path: str, *, query: Sequence[tuple[str, str]], body: Manifest | None, content: str
    ) -> tuple[int, bytes]:
        if method != "GET" and not self._may_change():
            raise SubstrateUnavailableError(f"{method} {path} is not sent: another operator may hold the lease by now")
        return await super()._once(method, path, query=query, body=body, content=content)

    async def _unless(self, method: str, path: str, **more: Any) -> bool:  # noqa: ANN401 - passed on
        """Whether it was done; False where the object is gone, or another one than was meant."""
        try:
            await self._send(method, path, **more)
        except ApiRefused as refused:
            if refused.answer.code in {_CONFLICT, _GONE}:
                return False
            raise
        return True

    def _experiment(self, name: str) -> str:
        return f"/apis/{API_VERSION}/namespaces/{self.namespace}/{PLURAL}/{name}"

    def _lease(self, name: str) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{name}".rstrip("/")

"""Requests of the operator's own: experiments, their status, Events, leases, and what is deleted by label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from killpoint.api.v1alpha1.spec import API_VERSION, KIND
from killpoint.controller.subjects import PLURAL, Subject
from killpoint.kubernetes.client import ApiRefused, Cluster

Document = Mapping[str, Any]

FIELD_MANAGER = "killpoint"
_APPLY = "application/apply-patch+yaml"
_CONFLICT = 409
_GONE = 404


class Requests(Cluster):
    """One namespace, for what only the operator does. Raises as ``Cluster`` does."""

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

    async def delete_secrets(self, selector: str) -> None:
        """Delete the secrets with these labels. Raises ApiRefused."""
        await self._send("DELETE", f"{self._core}/secrets", query=[("labelSelector", selector)])

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

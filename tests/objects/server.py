"""An API server as the samples need it: what it says of an object, without keeping it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import yaml
from kubernetes import config
from kubernetes.client import ApiClient

from killpoint.api.crd import PLURAL
from killpoint.api.v1alpha1.spec import API_VERSION
from tests.objects.corpus import Sample

INCOMPLETE = "some validation rules were not checked"
"""What the server adds where it stopped half way: it is about no field."""
UNKNOWN = re.compile(r'unknown field "([^"]+)"')


class ApiServer:
    """A namespace of an API server that knows the definition."""

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self._api = api
        self._objects = f"/apis/{API_VERSION}/namespaces/{namespace}/{PLURAL}"

    @classmethod
    def at(cls, kubeconfig: Path, namespace: str) -> ApiServer:
        return cls(config.new_client_from_config(str(kubeconfig)), namespace)  # type: ignore[no-untyped-call]

    def says(self, sample: Sample) -> list[str]:
        """``path: message`` of all that it has against the object, sorted. Nothing: it would take it."""
        query = "?dryRun=All&fieldValidation=Strict"
        if sample.before is None:
            return self._refusals("POST", f"{self._objects}{query}", sample.text)
        stored = self._request("POST", self._objects, sample.before)
        name = stored["metadata"]["name"]
        try:
            fresh = yaml.safe_load(sample.text)
            fresh["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
            return self._refusals("PUT", f"{self._objects}/{name}{query}", yaml.safe_dump(fresh))
        finally:
            self._request("DELETE", f"{self._objects}/{name}", "")

    def _refusals(self, method: str, path: str, text: str) -> list[str]:
        answer = self._request(method, path, text)
        return sorted(_refusals(answer)) if answer["kind"] == "Status" else []

    def _request(self, method: str, path: str, text: str) -> dict[str, Any]:
        response = self._api.rest_client.request(  # type: ignore[no-untyped-call]
            method,
            self._api.configuration.host + path,
            headers={"Content-Type": "application/yaml", "Accept": "application/json"},
            body=text.encode(),
        )
        return cast("dict[str, Any]", json.loads(response.read()))


def _refusals(status: dict[str, Any]) -> Iterator[str]:
    """What a refusal is about: its causes, or unknown fields, or what it says as a whole."""
    causes = [cause for cause in status.get("details", {}).get("causes", ()) if INCOMPLETE not in cause["message"]]
    for cause in causes:
        yield f"{cause['field']}: {cause['message']}"
    if not causes:
        message = " ".join(status["message"].split())
        unknown = UNKNOWN.findall(message)
        yield from (f'{path}: unknown field "{path}"' for path in unknown)
        if not unknown:
            yield message

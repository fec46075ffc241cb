"""An API server in memory: pods and secrets of one namespace, finalizers, deletion in grace, refusals on request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from kubernetes.aio.client import ApiClient, Configuration

from tests.unit.kubernetes.pods import FINISHED, disruption

Status = tuple[int, Mapping[str, Any] | str]


def status(code: int, reason: str, message: str, *, cause: str | None = None) -> Status:
    """The Status object that an API server answers with."""
    details = {"causes": [{"reason": cause}]} if cause else {}
    document = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return code, document


NOT_FOUND = status(404, "NotFound", "not found")


@dataclass
class Response:
    status: int
    document: Mapping[str, Any] | str

    async def read(self) -> bytes:
        text = self.document if isinstance(self.document, str) else json.dumps(self.document)
        return text.encode()


@dataclass
class FakeServer:
    """What the cluster holds. Tests play the kubelet by writing into a pod's status."""

    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    secrets: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    refuse: Callable[[str, str], Status | None] = lambda _method, _path: None
    """(method, path) → the answer instead of doing it."""
    away: int = 0
    """How many requests nobody answers."""
    hidden: set[str] = field(default_factory=set)
    """Pods that the list does not show yet."""
    logs: dict[str, str] = field(default_factory=dict)
    made: int = 0

    def answer(self, method: str, url: str, body: Any) -> Response:  # noqa: ANN401 - JSON
        split = urlsplit(url)
        path = unquote(split.path).removeprefix("/api/v1/namespaces/team-a/")
        self.requests.append(f"{method} {path}")
        if self.away:
            self.away -= 1
            raise ConnectionResetError("nobody there")
        refused = self.refuse(method, path)
        if refused is not None:
            return Response(*refused)
        plural, _, rest = path.partition("/")
        kept = self.pods if plural == "pods" else self.secrets
        if rest:
            return self._of_one(kept, method, rest, body)
        if method == "DELETE":
            return self._delete_secrets(parse_qs(split.query))
        return self._make(kept, body) if method == "POST" else self._list(parse_qs(split.query))

    def _of_one(self, kept: dict[str, dict[str, Any]], method: str, rest: str, body: Any) -> Response:  # noqa: ANN401
        name, _, sub = rest.partition("/")
        if name not in kept or (sub == "log" and name not in self.logs):
            return Response(*NOT_FOUND)
        match method, sub:
            case "GET", "log":
                return Response(200, self.logs[name])
            case "POST", "eviction":
                return self._evict(name)
            case "GET", "":
                return Response(200, kept[name])
            case "PATCH", "":
                return self._patch(name, body)
            case "DELETE", "":
                return self._delete(kept, name, body or {})
            case _:
                raise AssertionError(f"{method} {rest}")

    def _make(self, kept: dict[str, dict[str, Any]], body: dict[str, Any]) -> Response:
        name = body["metadata"]["name"]
        if name in kept:
            return Response(*status(409, "AlreadyExists", f"{name} already exists"))
        self.made += 1
        kept[name] = {**deepcopy(body), "status": {"phase": "Pending"}}
        kept[name]["metadata"]["uid"] = f"uid-{self.made}"
        return Response(201, kept[name])

    def _list(self, query: Mapping[str, list[str]]) -> Response:
        [selector] = query["labelSelector"]
        wanted = selector.split(",")
        shown = [pod for name, pod in self.pods.items() if name not in self.hidden and _matches(pod, wanted)]
        return Response(200, {"kind": "PodList", "items": shown})

    def _delete_secrets(self, query: Mapping[str, list[str]]) -> Response:
        [selector] = query["labelSelector"]
        wanted = re.split(r",(?![^(]*\))", selector)
        for name in [name for name, secret in self.secrets.items() if _matches(secret, wanted)]:
            del self.secrets[name]
        return Response(200, {})

    def _patch(self, name: str, body: Mapping[str, Any]) -> Response:
        metadata = self.pods[name]["metadata"]
        change = body["metadata"]
        for part in ("labels", "annotations"):
            metadata[part] = {**metadata.get(part, {}), **change.get(part, {})}
        gone = set(change.get("$deleteFromPrimitiveList/finalizers", ()))
        metadata["finalizers"] = [one for one in metadata.get("finalizers", ()) if one not in gone]
        pod = self.pods[name]
        if not metadata["finalizers"] and "deletionTimestamp" in metadata:
            del self.pods[name]
        return Response(200, pod)

    def _evict(self, name: str) -> Response:
        self.pods[name]["status"] |= disruption("EvictionByEvictionAPI")
        self._mark(name, grace=self.pods[name]["spec"]["terminationGracePeriodSeconds"])
        return Response(201, {})

    def _delete(self, kept: dict[str, dict[str, Any]], name: str, body: Mapping[str, Any]) -> Response:
        metadata = kept[name]["metadata"]
        wanted = body.get("preconditions", {}).get("uid")
        if wanted not in {None, metadata["uid"]}:
            return Response(*status(409, "Conflict", "the UID in the precondition is another"))
        if metadata.get("finalizers"):
            self._mark(name, grace=body.get("gracePeriodSeconds", 5))
        else:
            del kept[name]
        return Response(200, {})

    def _mark(self, name: str, *, grace: int) -> None:
        self.pods[name]["metadata"] |= {"deletionTimestamp": FINISHED, "deletionGracePeriodSeconds": grace}


class FakeApi(ApiClient):
    """The client library with a server in memory behind it."""

    def __init__(self, server: FakeServer) -> None:
        super().__init__(Configuration(host="https://api.example"))
        self.server = server

    async def call_api(self, method: str, url: str, *arguments: Any, **_: Any) -> Any:  # noqa: ANN401 - as it is there
        return self.server.answer(method, url, arguments[1])


def _matches(pod: Mapping[str, Any], wanted: list[str]) -> bool:
    labels = pod["metadata"].get("labels", {})
    return all(_fits(labels, one) for one in wanted)


def _fits(labels: Mapping[str, str], one: str) -> bool:
    if one.startswith("!"):
        return one[1:] not in labels
    if " notin " in one:
        name, _, values = one.partition(" notin ")
        return labels.get(name) not in values.strip("()").split(",")
    name, equals, value = one.partition("=")
    return labels.get(name) == value if equals else name in labels

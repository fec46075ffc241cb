"""A cluster in memory, over HTTP: as much of an API server, of kubelets and of payments as the operator has to do with.

Pods run to their end a moment after they were made, without a process: what they would write into their termination
log, and what they would charge, is made up here from their assignment. For measurements of the operator alone.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Document = dict[str, Any]

GROUP, VERSION = "killpoint.dev", "v1alpha1"
POINTS = (
    "prepare.before",
    "prepare.after",
    "charge.before",
    "charge.sent",
    "charge.after",
    "charge.recorded",
    "finalize.before",
    "finalize.after",
)
PATH = re.compile(
    r"/(?:api/v1|apis/[^/]+/[^/]+)/namespaces/(?P<namespace>[^/]+)/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?"
)
LOG_MAX = 5_000
"""Changes that a watch may go on from."""
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def _resource(plural: str, kind: str) -> Document:
    return {"name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": True, "verbs": VERBS}


DISCOVERY: Mapping[str, Document] = {
    "/version": {"gitVersion": "v1.34.0-simulated"},
    "/api": {"versions": ["v1"]},
    "/apis": {
        "groups": [
            {
                "name": GROUP,
                "versions": [{"version": VERSION, "groupVersion": f"{GROUP}/{VERSION}"}],
                "preferredVersion": {"version": VERSION},
            }
        ]
    },
    "/api/v1": {
        "resources": [
            {**_resource("namespaces", "Namespace"), "namespaced": False},
            _resource("pods", "Pod"),
            _resource("secrets", "Secret"),
            _resource("events", "Event"),
        ],
    },
    f"/apis/{GROUP}/{VERSION}": {
        "resources": [
            _resource("crashexperiments", "CrashExperiment"),
            _resource("crashexperiments/status", "CrashExperiment"),
        ]
    },
}


class NoSuchObjectError(Exception):
    """404."""


class ConflictError(Exception):
    """409; or 422, where a test of a JSON patch fails."""


@dataclass(frozen=True, slots=True)
class _Change:
    version: int
    line: bytes


@dataclass(kw_only=True)
class Simulated:
    """What the cluster holds. ``pod_seconds``: how long a pod runs."""

    pod_seconds: float = 0.02
    objects: dict[str, dict[tuple[str, str], Document]] = field(default_factory=dict)
    ledger: dict[str, tuple[list[Document], list[Document]]] = field(default_factory=dict)
    """Run → its effects and its requests."""
    writes: Counter[str] = field(default_factory=Counter)
    freed: int = 0
    """Trials whose tokens were deleted: they are over."""
    _version: int = 0
    _log: dict[str, list[_Change]] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _boot: str = field(default_factory=lambda: secrets.token_hex(4))

    # --- objects -----------------------------------------------------------------------------------------------

    def put(self, plural: str, found: Document, *, kind: str) -> Document:
        """Store an object as it is from now on, and tell those who watch."""
        self._version += 1
        metadata = found["metadata"]
        metadata["resourceVersion"] = str(self._version)
        self.objects.setdefault(plural, {})[metadata["namespace"], metadata["name"]] = found
        self._tell(plural, kind, found)
        return found

    def make(self, plural: str, found: Document) -> Document:
        """A new object. Raises ConflictError where there is one."""
        metadata = found["metadata"]
        if (metadata["namespace"], metadata["name"]) in self.objects.get(plural, {}):
            raise ConflictError("AlreadyExists")
        metadata |= {"uid": secrets.token_hex(16), "generation": 1, "creationTimestamp": _time()}
        made = self.put(plural, found, kind="ADDED")
        if plural == "pods":
            made["status"] = {"phase": "Pending"}
            asyncio.get_running_loop().call_later(self.pod_seconds, self._end_pod, made)
        return made

    def find(self, plural: str, namespace: str, name: str) -> Document:
        try:
            return self.objects[plural][namespace, name]
        except KeyError:
            raise NoSuchObjectError from None

    def remove(self, plural: str, found: Document) -> None:
        """Mark an object that has finalizers; others are gone."""
        metadata = found["metadata"]
        if metadata.get("finalizers"):
            metadata["deletionTimestamp"] = _time()
            self.put(plural, found, kind="MODIFIED")
            return
        self._version += 1
        del self.objects[plural][metadata["namespace"], metadata["name"]]
        self._tell(plural, "DELETED", found)

    def changed(self, plural: str, found: Document) -> Document:
        """After a patch: an object that was deleted goes with its last finalizer."""
        if "deletionTimestamp" in found["metadata"] and not found["metadata"].get("finalizers"):
            self.remove(plural, found)
            return found
        return self.put(plural, found, kind="MODIFIED")

    def _tell(self, plural: str, kind: str, found: Document) -> None:
        if plural in {"pods", "crashexperiments"}:
            line = json.dumps({"type": kind, "object": found}).encode() + b"\n"
            log = self._log.setdefault(plural, [])
            log.append(_Change(self._version, line))
            del log[: -LOG_MAX if len(log) > 2 * LOG_MAX else 0]
            self._changed.set()
            self._changed = asyncio.Event()

    async def changes(self, plural: str, since: int) -> AsyncIterator[bytes]:
        while True:
            log = self._log.get(plural, [])
            new = log[bisect_right(log, since, key=lambda change: change.version) :]
            for change in new:
                since = change.version
                yield change.line
            if not new:
                await self._changed.wait()

    @property
    def version(self) -> str:
        return str(self._version)

    # --- kubelet and payments ----------------------------------------------------------------------------------

    def _end_pod(self, pod: Document) -> None:
        container = pod["spec"]["containers"][0]
        env = {variable["name"]: variable.get("value") for variable in container["env"]}
        assignment = json.loads(env["KILLPOINT_ASSIGNMENT"].replace("$$", "$"))
        lines, code = self._worker(assignment)
        message = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        ended = {
            "exitCode": code,
            "reason": "Error" if code else "Completed",
            "startedAt": _time(),
            "finishedAt": _time(),
            "message": message,
        }
        pod["spec"]["nodeName"] = "node-1"
        pod["status"] = {
            "phase": "Failed" if code else "Succeeded",
            "containerStatuses": [
                {"name": container["name"], "restartCount": 0, "ready": False, "lastState": {},
                 "state": {"terminated": ended}}
            ],
        }  # fmt: skip
        metadata = pod["metadata"]
        if (metadata["namespace"], metadata["name"]) in self.objects["pods"]:
            self.put("pods", pod, kind="MODIFIED")

    def _worker(self, assignment: Document) -> tuple[list[Document], int]:
        """What a worker of the workflow ``charge`` without any key does, until it is to die."""
        fatal = {entry["point"] for entry in assignment["schedule"]}
        order = assignment["job"]["orders"][0]
        lines: list[Document] = [{"killpoint": 1, "attempt": assignment["attempt"], "nonce": assignment["nonce"]}]
        effect = ""
        for point in POINTS:
            if point == "charge.sent":
                effect = self._commit(assignment, "charge", order)
            if point == "finalize.after":
                self._commit(assignment, "finalize", {"id": order["id"]})
            lines.append({"point": point, "n": 1, "t": time.time_ns() // 1_000_000})
            if point in fatal:
                return lines, 137
        claims = [{"action": "charge", "order": order["id"], "effect": effect}]
        return [*lines, {"outcome": "finished", "claims": claims, "timings": {"run": 12.5, "checkpoint": 3.25}}], 0

    def _commit(self, assignment: Document, action: str, order: Document) -> str:
        effects, requests = self.ledger.setdefault(assignment["run"], ([], []))
        now = time.time_ns() // 1_000_000
        effect = f"{action[:2]}_{secrets.token_hex(12)}"
        same = {"action": action, "order": order["id"], "key": None, "attempt": assignment["attempt"]}
        effects.append(
            {**same, "id": effect, "item": "", "amount": order.get("amount", 0), "currency": order.get("currency", ""),
             "run": assignment["run"], "at": now}
        )  # fmt: skip
        requests.append(
            {**same, "outcome": "committed", "status": 201, "effect": effect, "received": now, "answered": now}
        )
        return effect

    def runs(self, names: list[str]) -> Document:
        """What payments' admin port says of these runs."""
        empty: tuple[list[Document], list[Document]] = ([], [])
        shown = {
            name: {"effects": effects, "requests": requests, "inFlight": 0}
            for name in names
            for effects, requests in (self.ledger.get(name, empty),)
        }
        return {"boot": self._boot, "runs": shown}


def _time() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


# --- HTTP ------------------------------------------------------------------------------------------------------------


def _problem(code: int, reason: str) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "reason": reason, "message": reason}, status=code)


def application(cluster: Simulated) -> web.Application:
    """The API server, and payments' admin port under its own path."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/admin/v1/runs":
            return web.json_response(cluster.runs(request.query.getall("run")))
        if request.path in DISCOVERY:
            return web.json_response(DISCOVERY[request.path])
        match = PATH.fullmatch(request.path)
        if match is None:
            return _problem(404, "NotFound")
        body = await request.json() if request.can_read_body else None
        if request.method != "GET":
            cluster.writes[f"{request.method} {'/'.join(filter(None, (match['plural'], match['sub'])))}"] += 1
        try:
            return await _answer(cluster, request, match, body)
        except NoSuchObjectError:
            return _problem(404, "NotFound")
        except ConflictError as error:
            return _problem(422 if str(error) == "Invalid" else 409, str(error))

    app = web.Application(client_max_size=16 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", answer)
    return app


async def _answer(
    cluster: Simulated,
    request: web.Request,
    match: re.Match[str],
    body: Any,  # noqa: ANN401 - JSON
) -> web.StreamResponse:
    namespace, plural, name = match["namespace"], match["plural"], match["name"]
    if name is None:
        if request.method == "POST":
            body["metadata"]["namespace"] = namespace
            return web.json_response(_stored(cluster, plural, body), status=201)
        if request.method == "DELETE":
            for found in list(_selected(cluster, plural, namespace, request.query.get("labelSelector", ""))):
                cluster.remove(plural, found)
            return web.json_response({})
        if request.query.get("watch"):
            return await _watch(cluster, request, plural)
        items = list(_selected(cluster, plural, namespace, request.query.get("labelSelector", "")))
        return web.json_response({"metadata": {"resourceVersion": cluster.version}, "items": items})
    found = cluster.find(plural, namespace, name)
    match request.method:
        case "DELETE":
            cluster.freed += plural == "secrets"
            cluster.remove(plural, found)
        case "PUT":
            if body["metadata"].get("resourceVersion") not in {None, found["metadata"]["resourceVersion"]}:
                raise ConflictError("Conflict")
            return web.json_response(cluster.put(plural, body, kind="MODIFIED"))
        case "PATCH":
            _patch(found, body, request.content_type)
            cluster.changed(plural, found)
        case _:
            pass
    return web.json_response(found)


def _stored(cluster: Simulated, plural: str, body: Document) -> Document:
    return body if plural == "events" else cluster.make(plural, body)


def _selected(cluster: Simulated, plural: str, namespace: str, selector: str) -> Iterator[Document]:
    wanted = [_wanted(one) for one in re.split(r",(?![^(]*\))", selector) if one]
    for (of, _), found in cluster.objects.get(plural, {}).items():
        labels = found["metadata"].get("labels", {})
        if of == namespace and all(holds(labels) for holds in wanted):
            yield found


def _wanted(one: str) -> Callable[[Mapping[str, str]], bool]:
    if one.startswith("!"):
        return lambda labels: one[1:] not in labels
    if " notin " in one:
        name, _, values = one.partition(" notin ")
        return lambda labels: labels.get(name) not in values.strip("()").split(",")
    name, equals, value = one.partition("=")
    return lambda labels: labels.get(name) == value if equals else name in labels


def _patch(found: Document, body: Any, content: str) -> None:  # noqa: ANN401 - JSON
    metadata = found["metadata"]
    match content:
        case "application/apply-patch+yaml":
            if body["metadata"].get("resourceVersion") not in {None, metadata["resourceVersion"]}:
                raise ConflictError("Conflict")
            found["status"] = body["status"]
        case "application/json-patch+json":
            _operations(found, body)
        case _:
            change = dict(body.get("metadata", {}))
            gone = set(change.pop("$deleteFromPrimitiveList/finalizers", ()))
            for part in ("labels", "annotations"):
                merged = {**metadata.get(part, {}), **(change.pop(part, None) or {})}
                metadata[part] = {key: value for key, value in merged.items() if value is not None}
            metadata |= change
            metadata["finalizers"] = [one for one in metadata.get("finalizers") or () if one not in gone]


def _operations(found: Document, operations: list[Document]) -> None:
    """A JSON patch, as far as kopf uses it: a test of the resource version, and finalizers."""
    for operation in operations:
        *path, last = operation["path"].strip("/").split("/")
        place: Any = found
        for part in path:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        match operation["op"], place:
            case "test", _:
                if place[last] != operation["value"]:
                    raise ConflictError("Invalid")
            case "add" | "replace", dict():
                place[last] = operation["value"]
            case "add", list():
                place.insert(len(place) if last == "-" else int(last), operation["value"])
            case "remove", dict():
                place.pop(last, None)
            case "remove", list():
                del place[int(last)]
            case unknown:
                raise ValueError(f"a JSON patch with {unknown}")


async def _watch(cluster: Simulated, request: web.Request, plural: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    with suppress(ConnectionResetError):  # a watch ends when the one who watches leaves
        async for line in cluster.changes(plural, int(request.query.get("resourceVersion") or 0)):
            await response.write(line)
    return response


@asynccontextmanager
async def served(cluster: Simulated) -> AsyncIterator[str]:
    """The cluster's address while the block runs."""
    runner = web.AppRunner(application(cluster), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def kubeconfig_of(address: str) -> Document:
    """What leads to it."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "simulated",
        "clusters": [{"name": "simulated", "cluster": {"server": address}}],
        "users": [{"name": "simulated", "user": {"token": "simulated"}}],
        "contexts": [{"name": "simulated", "context": {"cluster": "simulated", "user": "simulated"}}],
    }

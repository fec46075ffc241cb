"""Manifests: plain documents of the objects that an experiment needs in a cluster. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from killpoint.core.telemetry import QUIET
from killpoint.kubernetes import names
from killpoint.kubernetes.names import CONTAINER, Scope, digest_of, suffix_of
from killpoint.model.catalog import Setup
from killpoint.model.cells import AttemptId, TrialId
from killpoint.ports import Launch

Manifest = dict[str, Any]

GRACE_SECONDS = 5
"""Between SIGTERM and SIGKILL when a pod is deleted or evicted: long enough for a SIGTERM to be seen to be handled."""
VOLUME = "/var/run/killpoint/volume"
DATABASE_KEY = "database-url"
REQUESTS: Mapping[str, str] = MappingProxyType({"cpu": "50m", "memory": "192Mi"})
LIMITS: Mapping[str, str] = MappingProxyType({"memory": "1Gi"})
"""No limit on the processor: an import that is throttled is a start-up that takes minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTemplate:
    """How the pods of a setup are made."""

    image: str
    command: tuple[str, ...] = ()
    """Empty: the image's own."""
    pull_policy: str = "IfNotPresent"
    needs_database: bool = False
    requests: Mapping[str, str] = field(default_factory=lambda: REQUESTS)
    limits: Mapping[str, str] = field(default_factory=lambda: LIMITS)
    env: tuple[tuple[str, str], ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, str], ...] = ()
    pull_secrets: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, setup: Setup, *, image: str, pull_policy: str = "IfNotPresent") -> WorkerTemplate:
        """The pods of a setup of the catalog, from the image of its project."""
        command = ("python", "-m", setup.module) if setup.module else setup.command
        return cls(image=image, command=command, pull_policy=pull_policy, needs_database=setup.needs_database)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Where pods reach what they need."""

    payments_url: str
    control_url: str | None = None
    database_url: str = field(repr=False)
    """The experiment's database as pods reach it, without an application name."""


def labels_for(scope: Scope, *, trial: TrialId | None = None, attempt: AttemptId | None = None) -> dict[str, str]:
    """The labels by which an experiment's objects are found and shown."""
    labels = {
        names.MANAGED_BY: "killpoint",
        names.EXPERIMENT_UID: scope.owner.uid,
        names.JOURNAL: scope.journal,
    }
    if trial is not None:
        labels[names.TRIAL] = str(trial)
    if attempt is not None:
        labels |= {names.ATTEMPT: str(attempt), names.ROLE: attempt.role.value}
    return labels


def database_secret(scope: Scope, *, database_url: str) -> Manifest:
    """Where the experiment's workers find its database, password included."""
    return _secret(scope, name=scope.database_secret, labels=labels_for(scope), data={DATABASE_KEY: database_url})


def token_secret(scope: Scope, *, trial: TrialId, tokens: Mapping[str, str]) -> Manifest:
    """The tokens of every attempt that a trial may have, by the attempt's suffix."""
    return _secret(scope, name=scope.token_secret(trial), labels=labels_for(scope, trial=trial), data=tokens)


def worker_pod(
    scope: Scope, launch: Launch, *, template: WorkerTemplate, services: Services, active_seconds: int
) -> Manifest:
    """One attempt. ``active_seconds``: when the kubelet ends it although no harness lives to do so."""
    attempt = launch.attempt
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": scope.pod(attempt),
            "namespace": scope.namespace,
            "labels": {
                **template.labels,
                **labels_for(scope, trial=attempt.trial, attempt=attempt),
                names.SETUP: launch.setup,
            },
            "annotations": _annotations(launch),
            "finalizers": [names.EVIDENCE],
            "ownerReferences": [_owner_reference(scope)],
        },
        "spec": {
            "restartPolicy": "Never",
            # SIGKILL to PID 1 of a PID namespace from within does nothing: the worker must not be it.
            "shareProcessNamespace": True,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "activeDeadlineSeconds": active_seconds,
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [_container(scope, launch, template=template, services=services)],
            "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "volume", "emptyDir": {}}],
            **_placement(template),
        },
    }


def eviction(*, name: str, namespace: str) -> Manifest:
    """A request to evict a pod, which keeps to its disruption budgets."""
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}


def literal(value: str) -> str:
    """A value in which the kubelet expands nothing: it takes ``$(NAME)`` for a variable."""
    return value.replace("$", "$$")


def parks(launch: Launch) -> bool:
    """Whether the attempt's schedule has it wait for the harness."""
    return bool({"park", "freeze"} & _scheduled(launch))


def freezes(launch: Launch) -> bool:
    """Whether the attempt is one that stands still while others go on with its run."""
    return "freeze" in _scheduled(launch)


def _scheduled(launch: Launch) -> set[str]:
    schedule: Any = launch.assignment.get("schedule", [])
    return {entry["do"] for entry in schedule}


def _annotations(launch: Launch) -> dict[str, str]:
    return {
        names.ASSIGNMENT_DIGEST: digest_of(launch.assignment),
        names.NONCE: str(launch.assignment["nonce"]),
        **({names.PARKS: "true"} if parks(launch) else {}),
        # Nobody else shall end it, or put a container beside it that outlives it.
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
        "sidecar.istio.io/inject": "false",
        "linkerd.io/inject": "disabled",
    }


def _container(scope: Scope, launch: Launch, *, template: WorkerTemplate, services: Services) -> Manifest:
    return {
        "name": CONTAINER,
        "image": template.image,
        "imagePullPolicy": template.pull_policy,
        **({"command": [literal(word) for word in template.command]} if template.command else {}),
        "env": _environment(scope, launch, template=template, services=services),
        "resources": {"requests": dict(template.requests), "limits": dict(template.limits)},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "volume", "mountPath": VOLUME}],  # noqa: S108
    }


def _environment(
    scope: Scope, launch: Launch, *, template: WorkerTemplate, services: Services
) -> list[dict[str, object]]:
    assignment = json.dumps(launch.assignment, separators=(",", ":"))
    variables: list[dict[str, object]] = [
        *_variables(QUIET),
        *_variables(dict(template.env)),
        {"name": "HOME", "value": "/tmp"},  # noqa: S108 - an emptyDir of the pod's own
        {"name": "KILLPOINT_ASSIGNMENT", "value": literal(assignment)},
        {"name": "KILLPOINT_PAYMENTS_URL", "value": literal(services.payments_url)},
        {"name": "KILLPOINT_VOLUME", "value": VOLUME},
        {
            "name": "KILLPOINT_TOKEN",
            "valueFrom": _from_secret(scope.token_secret(launch.attempt.trial), suffix_of(launch.attempt)),
        },
    ]
    if launch.store == "postgres" or template.needs_database:
        separator = "&" if "?" in services.database_url else "?"
        url = f"$(KILLPOINT_DATABASE_BASE){separator}application_name={launch.attempt}"
        base = _from_secret(scope.database_secret, DATABASE_KEY)
        variables += [
            {"name": "KILLPOINT_DATABASE_BASE", "valueFrom": base},
            {"name": "KILLPOINT_DATABASE_URL", "value": url},
        ]
    if services.control_url is not None and parks(launch):
        variables.append({"name": "KILLPOINT_CONTROL_URL", "value": literal(services.control_url)})
    return variables


def _variables(values: Mapping[str, str]) -> list[dict[str, object]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _placement(template: WorkerTemplate) -> Manifest:
    placement: Manifest = {}
    if template.node_selector:
        placement["nodeSelector"] = dict(template.node_selector)
    if template.tolerations:
        placement["tolerations"] = [dict(toleration) for toleration in template.tolerations]
    if template.pull_secrets:
        placement["imagePullSecrets"] = [{"name": name} for name in template.pull_secrets]
    return placement


def _from_secret(name: str, key: str) -> dict[str, object]:
    return {"secretKeyRef": {"name": name, "key": key}}


def _secret(scope: Scope, *, name: str, labels: Mapping[str, str], data: Mapping[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": scope.namespace,
            "labels": dict(labels),
            "ownerReferences": [_owner_reference(scope)],
        },
        "type": "Opaque",
        # Kubelets need not watch what cannot change.
        "immutable": True,
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


def _owner_reference(scope: Scope) -> dict[str, object]:
    owner = scope.owner
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }

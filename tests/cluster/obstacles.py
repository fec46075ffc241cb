"""What the administrators of a cluster put in the way of pods, as objects. Policies and webhooks name one namespace."""

from __future__ import annotations

from typing import Any

NAMESPACE = "kubernetes.io/metadata.name"
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
WEBHOOK = "away.killpoint-test.example"


def quota(name: str, **hard: str) -> dict[str, Any]:
    """``pods``, or with two underscores for a slash: ``count__secrets``, ``limits_cpu`` for ``limits.cpu``."""
    limits = {key.replace("__", "/").replace("_", "."): value for key, value in hard.items()}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": limits}}


def limit_range(name: str, *, memory_max: str) -> dict[str, Any]:
    limit = {"type": "Container", "max": {"memory": memory_max}}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": {"limits": [limit]}}


def policy(name: str, *, namespace: str, label: str, says: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A policy that refuses pods with a label, and what binds it to a namespace."""
    group = "admissionregistration.k8s.io/v1"
    matched = {"resourceRules": [PODS], "objectSelector": labelled(label)}
    return {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": matched,
            "validations": [{"expression": "false", "message": says}],
        },
    }, {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {NAMESPACE: namespace}}},
        },
    }


def webhook_that_is_away(name: str, *, namespace: str, label: str, value: str) -> dict[str, Any]:
    """A webhook for pods with a label that nobody answers at, and without which no such pod gets in."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": WEBHOOK,
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [PODS],
                "namespaceSelector": {"matchLabels": {NAMESPACE: namespace}},
                "objectSelector": {"matchLabels": {label: value}},
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 1,
            }
        ],
    }


def labelled(label: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": label, "operator": "Exists"}]}

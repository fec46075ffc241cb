"""Every secret that there is of a release and its experiments, and everything that people get to read of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence

from killpoint.databases import dsn as dsns
from tests.cluster.helm import NAME
from tests.cluster.kubectl import Kubectl
from tests.cluster.test_cli import Cli

DATABASE_KEY = "database-url"
FORMS = ("table", "json", "yaml", "junit", "markdown", "html")


def secrets_of(kubectl: Kubectl) -> dict[str, str]:
    """What it is → its value: of the release, and of the experiments that run."""
    found = {f"the release's {key}": value for key, value in decoded(kubectl.get("secret", NAME))}
    for secret in kubectl.get("secrets", "--selector=app.kubernetes.io/managed-by=killpoint")["items"]:
        name = secret["metadata"]["name"]
        for key, value in decoded(secret):
            found[f"{name} {key}"] = value
            if key == DATABASE_KEY:
                found[f"{name} password"] = dsns.parse(value)["password"]
    return found


def decoded(secret: Mapping[str, dict[str, str]]) -> Iterator[tuple[str, str]]:
    for key, value in secret["data"].items():
        yield key, base64.b64decode(value).decode()


def read_by_people(cli: Cli, experiments: Sequence[str]) -> dict[str, str]:
    """What it is → its text: objects, events, logs, evidence and reports. Not the Secrets, nor Helm's own."""
    kubectl = cli.kubectl
    found = {kind: kubectl("get", kind, "--output=json") for kind in ("cexp", "events", "pods", "configmaps")}
    found["described"] = kubectl("describe", "cexp")
    for pod in json.loads(found["pods"])["items"]:
        name = pod["metadata"]["name"]
        found[f"log of {name}"] = kubectl("logs", name, "--all-containers", "--timestamps")
    for name in experiments:
        location = kubectl.get("cexp", name)["status"]["report"]["location"]
        found[f"evidence of {name}"] = kubectl("get", "--raw", location)
        for form in FORMS:
            found[f"{form} of {name}"] = cli("report", "--cluster", name, "-o", form).stdout
    return found


def leaks(texts: Mapping[str, str], secrets: Mapping[str, str]) -> list[str]:
    """Where which secret is, as it is or in base64."""
    return [
        f"{what} in {where}"
        for what, secret in secrets.items()
        for where, text in texts.items()
        if secret in text or base64.b64encode(secret.encode()).decode().rstrip("=") in text
    ]

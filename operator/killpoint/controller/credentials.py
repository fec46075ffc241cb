"""Credentials: who the operator is to the API server, for kopf's watches and for its own requests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import kopf
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class CredentialsError(Exception):
    """There are none, or they cannot be read; says where they were looked for."""


def own_namespace() -> str | None:
    """The namespace of the pod that this runs in; None outside a cluster."""
    file = SERVICE_ACCOUNT / "namespace"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else None


async def api_client() -> ApiClient:
    """A client with the credentials of KUBECONFIG, or else of the service account. Raises CredentialsError."""
    configuration = Configuration()
    try:
        if _in_cluster():
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            await config.load_kube_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (config.ConfigException, OSError) as error:
        raise CredentialsError(
            f"no credentials for an API server: {error}. Set KUBECONFIG, or run it in a pod with a service account."
        ) from error
    return ApiClient(configuration)


def login(**given: Any) -> kopf.ConnectionInfo | None:  # noqa: ANN401 - kopf's own arguments
    """Kopf's credentials; asked for again whenever the API server no longer takes them."""
    return kopf.login_with_service_account(**given) if _in_cluster() else kopf.login_via_client(**given)


def _in_cluster() -> bool:
    return not os.environ.get("KUBECONFIG") and (SERVICE_ACCOUNT / "token").is_file()

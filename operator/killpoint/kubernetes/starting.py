"""Starting: why a pod's worker has not started yet, in words and with the remedy. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from killpoint.kubernetes import names
from killpoint.kubernetes.wording import quoted

_IMAGE = ("ErrImageNeverPull", "ErrImagePull", "ImageInspectError", "ImagePullBackOff", "InvalidImageName")
_STARTS = ("CreateContainerError", "PostStartHookError", "RunContainerError")
_ON_ITS_WAY = ("", "ContainerCreating", "PodInitializing")


def why_not_started(pod: Mapping[str, Any]) -> str:
    """What the pod waits for, with the name of what is at fault; then what to do, and then what the cluster says."""
    called = f"pod {pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"
    unscheduled = _condition(pod, "PodScheduled")
    if unscheduled is not None and unscheduled.get("status") == "False":
        said = quoted(unscheduled.get("message") or unscheduled.get("reason"))
        return (
            f"{called} has no node. Lower what the worker asks for (resources, nodeSelector), tolerate the taint"
            f" (tolerations), or add a node that can take it. The cluster says: {said}"
        )
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    worker: Mapping[str, Any] = next((one for one in statuses if one.get("name") == names.CONTAINER), {})
    waiting = (worker.get("state") or {}).get("waiting") or {}
    reason, said = str(waiting.get("reason") or ""), f"The cluster says: {quoted(waiting.get('message'))}"
    if reason in _IMAGE:
        return (
            f"{called}: image {_image(pod)} cannot be had ({reason}). Check its name, that the node can reach its"
            f" registry, and {_credentials(pod)}. {said}"
        )
    if reason == "CreateContainerConfigError":
        return f"{called}: its container lacks something ({reason}). Make what it names, or run it again. {said}"
    if reason in _STARTS:
        return f"{called}: its worker does not start ({reason}). Check the worker's command and image. {said}"
    if reason not in _ON_ITS_WAY:
        return f"{called}: its worker does not start ({reason}). {said}"
    if not pod.get("spec", {}).get("nodeName"):
        return f"{called} has no node, and no scheduler says why. Is the cluster's scheduler running?"
    return (
        f"{called} is still being made on node {pod['spec']['nodeName']}. Its events say more (kubectl describe);"
        " a large image may need a higher limits.startupSeconds."
    )


def is_refused(pod: Mapping[str, Any]) -> bool:
    """Whether its node has tried to start the worker, and could not."""
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    worker: Mapping[str, Any] = next((one for one in statuses if one.get("name") == names.CONTAINER), {})
    waiting = (worker.get("state") or {}).get("waiting") or {}
    return str(waiting.get("reason") or "") not in _ON_ITS_WAY


def _condition(pod: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    conditions = pod.get("status", {}).get("conditions") or ()
    found: Mapping[str, Any] | None = next((one for one in conditions if one.get("type") == kind), None)
    return found


def _credentials(pod: Mapping[str, Any]) -> str:
    """What the image is pulled with. A kubelet goes on without a missing secret, and the pod does not say so."""
    secrets = [str(secret.get("name")) for secret in pod.get("spec", {}).get("imagePullSecrets") or ()]
    return f"that imagePullSecrets are there: {', '.join(secrets)}" if secrets else "imagePullSecrets"


def _image(pod: Mapping[str, Any]) -> str:
    containers = pod.get("spec", {}).get("containers") or ()
    return next((str(one.get("image")) for one in containers if one.get("name") == names.CONTAINER), "?")

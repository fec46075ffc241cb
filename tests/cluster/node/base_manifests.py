"""What every cluster has from its start: DNS, and a storage class.

CoreDNS runs in a pod, as everywhere, so that policies can name it. The class is called and behaves like kind's.
"""

from __future__ import annotations

from tests.cluster.node.layout import DNS_SERVICE, INSIDE, PAUSE_IMAGE

STORAGE_CLASS = "standard"
PROVISIONER = "killpoint.dev/folder"
NAMESPACE = "kube-system"
NAME = "coredns"
LABELS = {"k8s-app": "kube-dns"}
COREFILE = """\
.:53 {
  errors
  ready
  kubernetes cluster.local in-addr.arpa {
    pods insecure
  }
  cache 5
}
"""


def manifests() -> dict[str, object]:
    """One List of all."""
    dns = [service_account(), cluster_role(), cluster_role_binding(), config_map(), service(), deployment()]
    return {"apiVersion": "v1", "kind": "List", "items": [storage_class(), *dns]}


def storage_class() -> dict[str, object]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": PROVISIONER,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def service_account() -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": NAMESPACE}}


def cluster_role() -> dict[str, object]:
    verbs = ["list", "watch"]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"system:{NAME}"},
        "rules": [
            {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": verbs},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": verbs},
        ],
    }


def cluster_role_binding() -> dict[str, object]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"system:{NAME}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"system:{NAME}"},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    }


def config_map() -> dict[str, object]:
    metadata = {"name": NAME, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"Corefile": COREFILE}}


def service() -> dict[str, object]:
    ports = [{"name": f"dns-{protocol.lower()}", "port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": NAMESPACE, "labels": LABELS},
        "spec": {"clusterIP": DNS_SERVICE, "selector": LABELS, "ports": ports},
    }


def deployment() -> dict[str, object]:
    """The node's own binary in an otherwise empty image: nothing has to be built or loaded for it."""
    container = {
        "name": NAME,
        "image": PAUSE_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["/node/kube", "coredns", "-conf", "/config/Corefile"],
        "securityContext": {
            "runAsUser": 0,  # for port 53, and with no other power
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
        },
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "volumeMounts": [
            {"name": "node", "mountPath": "/node", "readOnly": True},
            {"name": "config", "mountPath": "/config", "readOnly": True},
        ],
    }
    pod = {
        "serviceAccountName": NAME,
        "dnsPolicy": "Default",
        "priorityClassName": "system-cluster-critical",
        "containers": [container],
        "volumes": [
            {"name": "node", "hostPath": {"path": str(INSIDE / "bin"), "type": "Directory"}},
            {"name": "config", "configMap": {"name": NAME}},
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": LABELS},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": pod},
        },
    }

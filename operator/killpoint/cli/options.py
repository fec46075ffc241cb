"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

InCluster = Annotated[
    bool,
    typer.Option(
        "--cluster",
        help="In a cluster, by the operator there. Each of --namespace, --context and --kubeconfig says so, too.",
    ),
]
OfCluster = Annotated[
    bool,
    typer.Option(
        "--cluster",
        help="Experiments of a cluster, not runs of this machine. --namespace, --context and --kubeconfig say so, too.",
    ),
]
ForCluster = Annotated[
    bool, typer.Option("--cluster", help="For a cluster: what its API server and its operator would refuse.")
]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Where the experiments are.", show_default=False)
]
Context = Annotated[str | None, typer.Option("--context", help="The kubeconfig's context.", show_default=False)]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig", help="The file that leads to the cluster; KUBECONFIG, or ~/.kube/config.", show_default=False
    ),
]

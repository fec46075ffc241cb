"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

InCluster = Annotated[
    bool,
    typer.Option(
        "--cluster", help="In a cluster, as an operator there runs it. So it is with the three options below, too."
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

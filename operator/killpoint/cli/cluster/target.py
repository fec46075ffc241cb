"""Target: which cluster and which namespace a command is about, and the way there."""

from __future__ import annotations

import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from killpoint.cli.cluster.experiments import Experiments
from killpoint.cli.exits import Exit, Stop

PLUGIN = "kubectl-killpoint"
"""As ``kubectl`` calls its plugins: with this name a command is about a cluster."""
EXTRA = ("aiohttp", "kubernetes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What was asked for; what is None is as the kubeconfig has it."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: Path | None = None

    @property
    def options(self) -> str:
        """The same once more, each with a space before it."""
        given = (("--namespace", self.namespace), ("--context", self.context), ("--kubeconfig", self.kubeconfig))
        return "".join(f" {name}={shlex.quote(str(value))}" for name, value in given if value is not None)

    def command(self, *words: str) -> str:
        """A command of ours about the same cluster, spelled as this one was called."""
        verb, *more = words
        start = ["kubectl", "killpoint", verb] if is_plugin() else ["killpoint", verb, "--cluster"]
        return shlex.join([*start, *more]) + self.options

    def within(self, namespace: str | None) -> Target:
        """For an experiment whose file names its namespace. Raises Stop where another one was asked for."""
        if namespace is None or namespace == self.namespace:
            return self
        if self.namespace is not None:
            message = f"the file is for namespace {namespace}, and --namespace says {self.namespace}"
            raise Stop(Exit.INVALID, message)
        return Target(namespace=namespace, context=self.context, kubeconfig=self.kubeconfig)


def is_plugin(program: str | None = None) -> bool:
    """Whether kubectl has called us. ``program``: as what we were called."""
    return Path(sys.argv[0] if program is None else program).stem == PLUGIN


def target_of(
    *, cluster: bool, namespace: str | None, context: str | None, kubeconfig: Path | None, program: str | None = None
) -> Target | None:
    """The cluster that a command is about; None: it is about this machine. ``program``: as what it was called."""
    named = any(value is not None for value in (namespace, context, kubeconfig))
    if not (cluster or named or is_plugin(program)):
        return None
    return Target(namespace=namespace, context=context, kubeconfig=kubeconfig)


@asynccontextmanager
async def connected(target: Target) -> AsyncIterator[Experiments]:
    """The experiments of the namespace. Raises Stop where there is no way there."""
    try:
        # An extra, and slow to import: only for those who ask for a cluster.
        from killpoint.cli.cluster.api import opened  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        message = f"for a cluster, killpoint needs the Python package {error.name}: pip install 'killpoint[cluster]'"
        raise Stop(Exit.NOT_EXECUTED, message) from error
    async with opened(target) as experiments:
        yield experiments

"""Refusals: what the API server says when it does not do what a command asks, with the remedy. Pure."""

from __future__ import annotations

from killpoint.cli.exits import Exit, Stop
from killpoint.kubernetes.refusals import Answer

_FORBIDDEN = 403
_GONE = 404
_INVALID = frozenset({400, 422})


def stop_for(answer: Answer, request: str, namespace: str) -> Stop:
    """The end of a command whose request was refused."""
    said = answer.message.strip()
    proxied = "/proxy/" in request
    if answer.code == _FORBIDDEN and proxied:
        remedy = "Reading evidence needs the right to get services/proxy: the chart's Role …-evidence-reader gives it."
        return Stop(Exit.NOT_EXECUTED, f"the evidence may not be read: {said}\n{remedy}")
    if answer.code == _FORBIDDEN:
        remedy = f"Ask for get, list, create, patch and delete of crashexperiments.killpoint.dev in {namespace}."
        return Stop(Exit.NOT_EXECUTED, f"the API server does not allow it: {said}\n{remedy}")
    if answer.code == _GONE and proxied and said.startswith("services "):
        # The API server's own words: no such Service. What the operator says of evidence is another 404.
        remedy = (
            "Its operator was uninstalled. `helm install` under the same release name and in the same namespace brings"
            " the evidence back, where Postgres' volume, or the Postgres of your own, is still there."
        )
        return Stop(Exit.NOT_EXECUTED, f"nobody is there to hand out the evidence: {said}\n{remedy}")
    if answer.code == _GONE and not proxied and "namespaces" in said:
        return Stop(Exit.INVALID, f"there is no namespace {namespace}: kubectl create namespace {namespace}")
    if answer.code == _GONE and not proxied:
        return Stop(Exit.NOT_EXECUTED, f"the cluster has no such thing: {said}\nIs killpoint installed in it?")
    if answer.code in _INVALID:
        return Stop(Exit.INVALID, f"the API server refuses the experiment: {said}")
    return Stop(Exit.NOT_EXECUTED, f"the API server refuses {request}: {answer.code} {said}")

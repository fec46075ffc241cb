"""Evidence of an experiment in a cluster: fetched through the API server, held against the digest in the status."""

from __future__ import annotations

import re

from killpoint.cli.cluster.experiments import Document, Experiments, is_accepted, is_over, name_of, status_of
from killpoint.cli.exits import Exit, Stop
from killpoint.journal.archive import Archive, decode_archive, digest_of
from killpoint.ports import SubstrateUnavailableError

_LOCATION = re.compile(r"/api/v1/namespaces/[-a-z0-9]+/services/[-:a-z0-9]+/proxy(/[-.a-z0-9]+)+")
"""The only kind of path that is asked for: a status is no place to be sent anywhere from."""


async def archive_of(experiments: Experiments, body: Document) -> Archive:
    """All that is known of an experiment that is over. Raises Stop, and ArchiveError."""
    called = f"experiment {experiments.namespace}/{name_of(body)}"
    result = _result_of(body, called, experiments)
    report = status_of(body).get("report")
    if report is None:
        raise Stop(
            Exit.NOT_EXECUTED,
            f"{called} ended with {result}, and its status names no evidence.\n"
            "The operator has to be told its Service: KILLPOINT_EVIDENCE_SERVICE, which the chart sets.",
        )
    location, digest = str(report.get("location")), report.get("sha256")
    if _LOCATION.fullmatch(location) is None or ".." in location:
        raise Stop(Exit.NOT_EXECUTED, f"{called} ended with {result}, and its evidence is at no service: {location}")
    try:
        data = await experiments.read(location)
    except SubstrateUnavailableError as error:
        raise Stop(
            Exit.NOT_EXECUTED, f"{called} ended with {result}, and its evidence cannot be had: {error}"
        ) from error
    if digest_of(data) != digest:
        raise Stop(
            Exit.NOT_EXECUTED,
            f"{called} ended with {result}, and what is at {location} is not the evidence that its status names:"
            f" its SHA-256 is {digest_of(data)}, not {digest}.",
        )
    return decode_archive(data, source=f"the evidence of {called}")


def _result_of(body: Document, called: str, experiments: Experiments) -> str:
    """The word for it. Raises Stop where it came to none, with the reason."""
    status = status_of(body)
    if not is_over(body):
        progress = status.get("progress", "no")
        raise Stop(
            Exit.INVALID,
            f"{called} is not over: {progress} trials are judged."
            f" `{experiments.command('status', name_of(body))}` shows how far it is.",
        )
    reasons = "\n".join(map(str, status.get("reasons") or ()))
    if is_accepted(body) is False:
        raise Stop(Exit.INVALID, f"{called} was not accepted.\n{reasons}".rstrip())
    result = str(status.get("result"))
    if result == "Error":
        raise Stop(Exit.NOT_EXECUTED, f"{called} could not be run to its end.\n{reasons}".rstrip())
    return result

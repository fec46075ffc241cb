"""Where the numbers come from."""

from __future__ import annotations

from killpoint.model.summary import ExperimentSummary
from killpoint.report.html.markup import Html, code, el, facts
from killpoint.report.words import moment


def section(summary: ExperimentSummary) -> Html:
    provenance = summary.provenance
    began = moment(provenance.started_ms).strftime("%Y-%m-%d %H:%M:%S")
    ended = "not over" if provenance.ended_ms is None else moment(provenance.ended_ms).strftime("%Y-%m-%d %H:%M:%S")
    pairs: list[tuple[str, str]] = [
        ("Started, ended", f"{began} to {ended} UTC"),
        ("Experiment", f"{summary.name}, workflow {summary.workflow}"),
        ("Journal", code(summary.journal)),
        ("Substrate", provenance.substrate),
        ("Seed", f"{provenance.seed}"),
        ("killpoint", provenance.killpoint),
        *provenance.platform,
    ]
    for setup, versions in provenance.versions:
        pairs.append((setup, ", ".join(f"{name} {version}" for name, version in versions)))
    head = el("div", el("h2", "Provenance", id="h-provenance"), cls="sh")
    return el("section", head, facts(pairs, cls="pv"), id="provenance", aria_labelledby="h-provenance")

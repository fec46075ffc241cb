"""Expectations: one judged trial held against the rule of its cell."""

from __future__ import annotations

from killpoint.model.evidence import TrialEvidence
from killpoint.model.findings import Judgement, Verdict
from killpoint.model.summary import Expected


def set_apart(evidence: TrialEvidence, judgement: Judgement, expected: Expected) -> str | None:
    """The framework's own error for which a trial is left out of the counts, in its words; None where it counts.

    Only a trial that is stranded by that very error: one whose ledger shows harm is never set apart, and neither
    is one whose kill did not land.
    """
    rule = expected.framework_errors
    found = {finding.verdict for finding in judgement.findings}
    if rule is None or Verdict.STRANDED not in found or not found - {Verdict.STRANDED} <= set(expected.verdicts):
        return None
    end = evidence.attempts[-1].end if evidence.attempts else None
    if end is None or end.outcome is None or end.outcome.error_class is None:
        return None
    words = f"{end.outcome.error_class}: {end.outcome.error_message or ''}"
    return words if rule.match in words else None


def met(judgement: Judgement, expected: Expected) -> bool | None:
    """Whether a trial is as expected; None where it shows nothing either way."""
    if judgement.conclusive:
        return not differences(judgement, expected)
    harm = {
        finding.verdict for finding in judgement.findings if finding.verdict.severity > Verdict.INCONCLUSIVE.severity
    }
    witnessed = dict(judgement.effects)
    too_many = any(witnessed.get(action, 0) > count for action, count in expected.effects)
    return False if harm - set(expected.verdicts) or too_many else None


def differences(judgement: Judgement, expected: Expected) -> list[str]:
    """In words, what of a judgement is not as expected."""
    found = []
    if judgement.verdict not in expected.verdicts:
        allowed = " or ".join(expected.verdicts)
        found.append(f"{judgement.verdict} instead of {allowed}")
    also = {finding.verdict for finding in judgement.findings} - {judgement.verdict, *expected.verdicts}
    found.extend(f"{verdict} as well" for verdict in Verdict if verdict in also - {Verdict.INCONCLUSIVE})
    if expected.outcomes and judgement.outcome not in expected.outcomes:
        found.append(f"outcome {judgement.outcome} instead of {' or '.join(expected.outcomes)}")
    witnessed = dict(judgement.effects)
    found.extend(
        f"{witnessed.get(action, 0)} of {action} instead of {count}"
        for action, count in expected.effects
        if witnessed.get(action, 0) != count
    )
    return found

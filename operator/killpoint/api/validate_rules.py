"""What is wrong with a rule by itself: words, contradictions, regular expressions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from killpoint.api.expectations import verdicts_of
from killpoint.api.problems import Problem, forbidden, invalid, unsupported
from killpoint.api.v1alpha1.expect import Rule
from killpoint.model.findings import Verdict
from killpoint.model.workflows import WORKFLOWS

JUDGED = tuple(verdict.value for verdict in Verdict if verdict is not Verdict.INCONCLUSIVE)


def rule_problems(rule: Rule, number: int) -> Iterator[Problem]:
    """What is wrong with a rule, whatever the cells are."""
    path = f"spec.expect[{number}]"
    if rule.where.control and rule.where.kill:
        yield forbidden(f"{path}.where.kill", "a control has no kill", "remove kill, or control")
    yield from _verdict_problems(rule, path)
    yield from _share_problems(rule, path)
    yield from _effect_problems(rule, path)
    if rule.framework_errors:
        yield from _expression_problems(rule.framework_errors.match, f"{path}.frameworkErrors.match")


def _verdict_problems(rule: Rule, path: str) -> Iterator[Problem]:
    for place, verdict in enumerate(rule.verdict):
        if verdict is Verdict.INCONCLUSIVE:
            reason = "an inconclusive trial shows nothing, so it cannot be what is expected"
            yield forbidden(f"{path}.verdict[{place}]", reason, "remove it")
    if rule.verdict == (Verdict.EXACTLY_ONCE,) and rule.outcome and "finished" not in rule.outcome:
        yield invalid(f"{path}.outcome", rule.outcome[0], "exactly-once says that the run finished")


def _share_problems(rule: Rule, path: str) -> Iterator[Problem]:
    for verdict, share in rule.share.items():
        place = f"{path}.share.{verdict}"
        if verdict not in JUDGED:
            yield unsupported(place, verdict, JUDGED)
        elif rule.verdict and verdict not in rule.verdict:
            yield invalid(place, verdict, f"{path}.verdict does not allow it", "add it there, or remove it here")
        if share.min > share.max:
            yield invalid(f"{place}.min", share.min, f"it is greater than max, {share.max}")
    if (least := sum(share.min for share in rule.share.values())) > 1:
        yield invalid(f"{path}.share", f"{least:g}", "the smallest parts together are more than all trials")
    most = sum(share.max for share in rule.share.values())
    if rule.share and most < 1 and set(rule.verdict) <= set(rule.share):
        reason = "no other verdict is allowed, and the largest parts together are less than all trials"
        yield invalid(f"{path}.share", f"{most:g}", reason, f"name the other verdict in {path}.verdict")


def _effect_problems(rule: Rule, path: str) -> Iterator[Problem]:
    actions = tuple(dict.fromkeys(action for workflow in WORKFLOWS for action in workflow.actions))
    for action, count in rule.effects.items():
        if action not in actions:
            yield unsupported(f"{path}.effects.{action}", action, actions)
        elif count != 1 and set(rule.share) <= set(JUDGED) and verdicts_of(rule) == (Verdict.EXACTLY_ONCE,):
            reason = "the rule's verdict is exactly-once, which is one effect"
            yield invalid(f"{path}.effects.{action}", count, reason, "add the verdict that is expected, or remove it")
    most = max(rule.effects.values(), default=0)
    if rule.verdict == (Verdict.DUPLICATE,) and set(rule.effects) == set(actions) and most <= 1:
        yield invalid(f"{path}.effects", most, "a duplicate has more than one effect of some action")


def _expression_problems(expression: str, path: str) -> Iterator[Problem]:
    try:
        re.compile(expression)
    except re.error as error:
        yield invalid(path, expression, f"not a regular expression: {error}")

"""What is wrong with a rule by itself: words and contradictions. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from killpoint.api.expectations import verdicts_of
from killpoint.api.problems import Problem, invalid, meant, unsupported
from killpoint.api.rules import (
    CONTROL_HAS_NO_KILL,
    EXACTLY_ONCE_FINISHES,
    EXPECTS_TO_LEARN,
    JUDGED,
    ROUNDING,
    SHARE_UPRIGHT,
    SHARES_ARE_ALLOWED,
    SHARES_ARE_OF_VERDICTS,
    SHARES_LEAST,
    SHARES_MOST,
)
from killpoint.api.v1alpha1.expect import Rule
from killpoint.api.validate_workers import parameter_name_problems
from killpoint.model.findings import Verdict
from killpoint.model.workflows import WORKFLOWS


def rule_problems(rule: Rule, number: int) -> Iterator[Problem]:
    """What is wrong with a rule, whatever the cells are."""
    path = f"spec.expect[{number}]"
    if rule.where.control and rule.where.kill:
        yield CONTROL_HAS_NO_KILL.problem(f"{path}.where")
    yield from parameter_name_problems(f"{path}.where.parameters", rule.where.parameters)
    yield from _verdict_problems(rule, path)
    yield from _share_problems(rule, path)
    yield from _effect_problems(rule, path)


def _verdict_problems(rule: Rule, path: str) -> Iterator[Problem]:
    for place, verdict in enumerate(rule.verdict):
        if verdict is Verdict.INCONCLUSIVE:
            yield EXPECTS_TO_LEARN.problem(f"{path}.verdict[{place}]")
    if rule.verdict == (Verdict.EXACTLY_ONCE,) and rule.outcome and "finished" not in rule.outcome:
        yield EXACTLY_ONCE_FINISHES.problem(path)


def _share_problems(rule: Rule, path: str) -> Iterator[Problem]:
    for verdict, share in rule.share.items():
        if verdict not in JUDGED:
            yield SHARES_ARE_OF_VERDICTS.problem(f"{path}.share", at=f".{verdict}", remedy=meant(verdict, JUDGED))
        elif rule.verdict and verdict not in rule.verdict:
            yield SHARES_ARE_ALLOWED.problem(path, at=f".{verdict}")
        if share.min > share.max:
            yield SHARE_UPRIGHT.problem(f"{path}.share.{verdict}")
    if sum(share.min for share in rule.share.values()) > 1 + ROUNDING:
        yield SHARES_LEAST.problem(f"{path}.share")
    most = sum(share.max for share in rule.share.values())
    if rule.share and most < 1 - ROUNDING and set(rule.verdict) <= set(rule.share):
        yield SHARES_MOST.problem(path)


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
        yield invalid(f"{path}.effects", most, "a duplicate has more than one effect of some action", "raise one")

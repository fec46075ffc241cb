"""From the rules of a specification to the expectations that the core judges by. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from killpoint.api.product import where_of
from killpoint.api.v1alpha1 import expect
from killpoint.model.findings import Verdict
from killpoint.model.rules import Rule
from killpoint.model.summary import Expected, FrameworkErrors, Share


def rules_of(rules: Sequence[expect.Rule]) -> tuple[Rule, ...]:
    """The rules in their order, each with its path as its source."""
    return tuple(_rule(rule, f"spec.expect[{number}]") for number, rule in enumerate(rules))


def verdicts_of(rule: expect.Rule) -> tuple[Verdict, ...]:
    """The verdicts that a rule allows: those it names, else those it gives a share, else exactly-once."""
    shared = tuple(Verdict(verdict) for verdict in sorted(rule.share))
    return rule.verdict or shared or (Verdict.EXACTLY_ONCE,)


def _rule(rule: expect.Rule, source: str) -> Rule:
    errors = rule.framework_errors
    return Rule(
        where=where_of(rule.where),
        control=rule.where.control,
        expected=Expected(
            source=source,
            verdicts=verdicts_of(rule),
            outcomes=rule.outcome,
            effects=tuple(sorted(rule.effects.items())),
            shares=tuple(
                Share(verdict=Verdict(verdict), least=share.min, most=share.max)
                for verdict, share in sorted(rule.share.items())
            ),
            framework_errors=FrameworkErrors(match=errors.match, most=errors.max) if errors else None,
        ),
    )

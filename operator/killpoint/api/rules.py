"""What the API server checks beyond types and limits: rules in CEL, and the words in which they refuse. Pure.

Each rule is checked twice: by the server, with ``holds``, and by the validation of a file, which says the same words.
The words are constants, as a message that is computed costs more than the server allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from killpoint.api import available
from killpoint.api.available import OFFERS, Where
from killpoint.api.problems import Problem, quoted
from killpoint.api.v1alpha1.base import LABEL_KEY, WORD, WORD_CHARACTERS_MAX, KillMethod, Model, Resume, Store
from killpoint.api.v1alpha1.matrix import Axes
from killpoint.api.v1alpha1.spec import MUTABLE, Spec
from killpoint.api.v1alpha1.workers import Worker, Workflow
from killpoint.model.findings import Verdict

JUDGED = tuple(verdict.value for verdict in Verdict if verdict is not Verdict.INCONCLUSIVE)
ROUNDING = 1e-6
"""Sums of shares may be off by this much: the order in which the server adds them is its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule about an object or value of the specification."""

    holds: str
    """CEL: true where nothing is wrong. ``self`` is the value."""
    reason: str
    """What is wrong, as a sentence without a full stop."""
    remedy: str | None = None
    """What to do about it."""
    field: str = ""
    """The field of ``self`` that is to blame: ``.name``. Empty: all of it."""
    kind: Literal["Forbidden", "Required"] = "Forbidden"

    def problem(self, path: str, *, at: str = "", remedy: str | None = None) -> Problem:
        """The problem of the value at ``path``. ``at`` points further into the field, ``remedy`` says more exactly."""
        lead = "Required value" if self.kind == "Required" else "Forbidden"
        return Problem(
            path=f"{path}{self.field}{at}", message=f"{lead}: {self.reason}", suggestion=remedy or self.remedy
        )

    def validation(self) -> dict[str, str]:
        """It as an entry of ``x-kubernetes-validations``."""
        entry = {
            "rule": self.holds,
            "message": self.reason + (f"; {self.remedy}" if self.remedy else ""),
            "reason": f"FieldValue{self.kind}",
        }
        return {**entry, "fieldPath": self.field} if self.field else entry


# --- kills -----------------------------------------------------------------------------------------------------------

KILL_NOT_NONE = Rule(
    holds="!has(self.name) || self.name != 'none'",
    reason='"none" is the name for no kill',
    remedy="choose another name",
    field=".name",
)
KILL_NAMED_BY_POINTS = Rule(
    holds="!has(self.name) || !('*' in self.at)",
    reason="the cells of this kill take their names from the points",
    remedy="remove it",
    field=".name",
)
EVERY_POINT_FIRST = Rule(
    # Without a point at all, the schema has its say, and this rule shall not add that there is none to look at.
    holds="self.at.filter(point, point == '*').size() == (self.at.size() > 0 && self.at[0] == '*' ? 1 : 0)",
    reason='"*" can only be the first, as each point that the control passed is tried there',
    remedy="write the point",
    field=".at",
)
KILLS_DIFFER = Rule(
    holds="self.all(kill, self.exists_one(other, other.at == kill.at && other.method == kill.method))",
    reason="two kills are the same",
    remedy="remove one",
)
KILL_NAMES_DIFFER = Rule(
    holds="self.all(kill, !has(kill.name) || self.exists_one(other, has(other.name) && other.name == kill.name))",
    reason="two kills have the same name",
    remedy="give one another name",
)
PARAMETERS_ARE_WORDS = Rule(
    holds=f"self.all(name, name.size() <= {WORD_CHARACTERS_MAX} && name.matches('{WORD}'))",
    reason=f"the name of a parameter is a lower-case word of at most {WORD_CHARACTERS_MAX} characters",
)
PARAMETERS_ARE_NO_AXES = Rule(
    holds=f"self.all(name, !(name in [{', '.join(repr(axis) for axis in Axes.model_fields)}]))",
    reason="an axis is not a parameter",
    remedy="write it beside parameters",
)

# --- expectations ----------------------------------------------------------------------------------------------------

CONTROL_HAS_NO_KILL = Rule(
    holds="!self.control || self.kill.size() == 0",
    reason="a control has no kill",
    remedy="remove kill, or control",
    field=".kill",
)
EXPECTS_TO_LEARN = Rule(
    holds="self != 'inconclusive'",
    reason="an inconclusive trial shows nothing, so it cannot be what is expected",
    remedy="remove it",
)
EXACTLY_ONCE_FINISHES = Rule(
    holds="self.verdict != ['exactly-once'] || self.outcome.size() == 0 || 'finished' in self.outcome",
    reason="exactly-once says that the run finished",
    remedy="add finished, or the verdict that is expected",
    field=".outcome",
)
SHARES_ARE_OF_VERDICTS = Rule(
    holds=f"self.all(verdict, verdict in [{', '.join(map(repr, JUDGED))}])",
    reason=f"a share is of one of {quoted(JUDGED)}",
)
SHARES_ARE_ALLOWED = Rule(
    holds="self.verdict.size() == 0 || self.share.all(verdict, verdict in self.verdict)",
    reason="verdict does not allow every verdict that has a share",
    remedy="add it to verdict, or remove its share",
    field=".share",
)
SHARE_UPRIGHT = Rule(
    holds="self.min <= self.max", reason="it is greater than max", remedy="exchange them", field=".min"
)
SHARES_LEAST = Rule(
    holds=f"self.map(verdict, self[verdict].min).sum() <= {1 + ROUNDING}",
    reason="the smallest parts together are more than all trials",
    remedy="lower a min",
)
SHARES_MOST = Rule(
    holds="self.share.size() == 0 || self.verdict.exists(verdict, !(verdict in self.share))"
    f" || self.share.map(verdict, self.share[verdict].max).sum() >= {1 - ROUNDING}",
    reason="no other verdict is allowed, and the largest parts together are less than all trials",
    remedy="name the other verdict in verdict, or raise a max",
    field=".share",
)

# --- workers ---------------------------------------------------------------------------------------------------------

WORKER_HAS_IMAGE = Rule(
    holds="self.image != ''",
    reason="say which image holds your worker",
    field=".image",
    kind="Required",
)
WORKER_HAS_COMMAND = Rule(
    holds="self.command.size() > 0",
    reason="say how your worker is started",
    field=".command",
    kind="Required",
)
"""On this machine only: in a cluster, its image knows."""
VARIABLE_IS_FREE = Rule(
    holds="!self.name.startsWith('KILLPOINT_')",
    reason="names that begin with KILLPOINT_ are the worker contract's",
    remedy="choose another name",
    field=".name",
)
TOLERATION_HAS_KEY = Rule(
    holds="self.key != '' || self.operator == 'Exists'",
    reason="without a key, all taints are meant",
    remedy="write operator: Exists, or the key",
    field=".operator",
)
TOLERATION_HAS_VALUE = Rule(
    holds="self.operator != 'Exists' || self.value == ''",
    reason="any value is meant where the operator is Exists",
    remedy="remove it",
    field=".value",
)

LABELS_ARE_NAMED = Rule(
    holds=f"self.all(key, key.matches('{LABEL_KEY}'))",
    reason="a key is a word of at most 63 characters, with a domain and a slash before it or without",
)

LABEL_DOMAINS = ("killpoint.dev", "app.kubernetes.io")
"""Labels by which killpoint finds pods, Services route requests and NetworkPolicies let them through: a worker that had
them could take the place of payments or Postgres, and be sent what is meant for these."""
LABELS_ARE_FREE = Rule(
    holds=" && ".join(f"self.all(key, !key.startsWith('{domain}/'))" for domain in LABEL_DOMAINS),
    reason=f"labels of {' and '.join(LABEL_DOMAINS)} are killpoint's",
    remedy="choose other names",
)

# --- the whole -------------------------------------------------------------------------------------------------------

ATTEMPTS_SUFFICE = Rule(
    holds="self.matrix.kill.all(kill, kill.at.size() < self.limits.attempts)"
    " && self.matrix.include.all(include, include.kill.all(kill, kill.at.size() < self.limits.attempts))",
    reason="each kill of a trial takes an attempt, and the last resume takes one more",
    remedy="raise it, or kill less often",
    field=".limits.attempts",
)
ABORT_STAYS = Rule(
    holds="!oldSelf.abort || self.abort",
    reason="an abort cannot be taken back",
    remedy="make an experiment of another name",
    field=".abort",
)


def immutable(name: str) -> Rule:
    """That a field of the specification stays as it was. Every field has a value: it is required, or has a default."""
    field = available.alias(Spec, name)
    return Rule(
        holds=f"self.{field} == oldSelf.{field}",
        reason="field is immutable",
        remedy="make an experiment of another name",
        field=f".{field}",
    )


IMMUTABLE = tuple(name for name in Spec.model_fields if name not in MUTABLE)
"""Fields of the specification that stay as they were when the experiment was made."""

AXES = ("Matrix", "Include")
_ALWAYS: Mapping[str, tuple[Rule, ...]] = {
    "Spec": (ATTEMPTS_SUFFICE, ABORT_STAYS, *map(immutable, IMMUTABLE)),
    "Kill": (KILL_NOT_NONE, KILL_NAMED_BY_POINTS, EVERY_POINT_FIRST),
    "Where": (CONTROL_HAS_NO_KILL,),
    "Rule": (EXACTLY_ONCE_FINISHES, SHARES_ARE_ALLOWED, SHARES_MOST),
    "Rule.verdict[]": (EXPECTS_TO_LEARN,),
    "Rule.share": (SHARES_ARE_OF_VERDICTS, SHARES_LEAST),
    "Share": (SHARE_UPRIGHT,),
    "Worker": (WORKER_HAS_IMAGE,),
    "Worker.parameters": (PARAMETERS_ARE_WORDS, PARAMETERS_ARE_NO_AXES),
    "Worker.nodeSelector": (LABELS_ARE_NAMED,),
    "Worker.labels": (LABELS_ARE_NAMED, LABELS_ARE_FREE),
    "Variable": (VARIABLE_IS_FREE,),
    "Toleration": (TOLERATION_HAS_KEY, TOLERATION_HAS_VALUE),
    **{f"{axes}.kill": (KILLS_DIFFER, KILL_NAMES_DIFFER) for axes in AXES},
    **{f"{model}.parameters": (PARAMETERS_ARE_WORDS, PARAMETERS_ARE_NO_AXES) for model in (*AXES, "Exclude", "Where")},
}


def rules() -> dict[str, tuple[Rule, ...]]:
    """Every rule of a cluster, by where it stands: ``Kill``, a field ``Kill.method``, an item ``Matrix.store[]``."""
    found = dict(_ALWAYS)
    for place, rule in _unavailable():
        found[place] = (*found.get(place, ()), rule)
    return found


def _unavailable() -> Iterator[tuple[str, Rule]]:
    """What is not available in a cluster, as rules."""
    offer = OFFERS[Where.CLUSTER]
    for axes in AXES:
        yield from ((f"{axes}.store[]", rule) for rule in _without("store", get_args(Store)))
        yield from ((f"{axes}.resume[]", rule) for rule in _without("resume", get_args(Resume)))
        yield from ((f"{axes}.{axis}", _at_default(Axes, axis)) for axis in available.LATER_AXES)
    yield from (("Kill.method", rule) for rule in _without("method", get_args(KillMethod)))
    later = ((Workflow, available.LATER_WORKFLOW_FIELDS), (Spec, offer.spec_without), (Worker, offer.worker_without))
    for model, names in later:
        for name in names:
            yield f"{model.__name__}.{available.alias(model, name)}", _at_default(model, name)


def _without(axis: str, words: Sequence[str]) -> Iterator[Rule]:
    """Rules against the words that cannot be asked for in a cluster."""
    for word in words:
        if word not in OFFERS[Where.CLUSTER].words[axis]:
            reason = available.lacking(axis, word, Where.CLUSTER)
            yield Rule(holds=f"self != '{word}'", reason=reason, remedy=available.instead(axis, Where.CLUSTER))


def _at_default(model: type[Model], name: str) -> Rule:
    """That a field has its default, or what comes to the same."""
    reason = available.lacking_field(name, Where.CLUSTER)
    return Rule(holds=_is_default(model.model_fields[name].default, name), reason=reason, remedy=available.REMOVE)


def _is_default(default: object, name: str) -> str:
    if name == "delivery":
        return "self.all(delivery, delivery.mode == 'once')"
    if isinstance(default, Model):
        return " && ".join(f"!has(self.{field.alias})" for field in type(default).model_fields.values())
    if isinstance(default, str):
        return f"self == '{default}'"
    return "self.size() == 0"

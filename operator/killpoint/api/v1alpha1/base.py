"""What all models of the specification share: their configuration and the types of their words."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

WORD = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
WORD_CHARACTERS_MAX = 63
POINT = r"^[a-z0-9][-a-z0-9]*([.][a-z0-9][-a-z0-9]*)+$"
KILLED_AT = r"^([*]|[a-z0-9][-a-z0-9]*([.][a-z0-9][-a-z0-9]*)+(#[1-9][0-9]{0,3})?)$"


class Model(BaseModel):
    """Frozen, closed and strict: what is not said here is refused, and nothing is converted on the quiet."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=False,
        serialize_by_alias=True,
    )


Word = Annotated[str, StringConstraints(pattern=WORD, max_length=WORD_CHARACTERS_MAX)]
"""A lower-case word, as a Kubernetes label: the words of coordinates."""
KillName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][-a-z0-9.#+]*$", max_length=420)]
Point = Annotated[str, StringConstraints(pattern=POINT, max_length=63)]
KilledAt = Annotated[str, StringConstraints(pattern=KILLED_AT, max_length=68)]
Text = Annotated[str, StringConstraints(max_length=1024)]
ParameterValue = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][-A-Za-z0-9_.]*$", max_length=63)]
Parameters = Annotated[
    dict[str, Annotated[tuple[ParameterValue, ...], Field(min_length=1, max_length=8)]], Field(max_length=4)
]
LABEL_KEY = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
LabelValue = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", max_length=63)]
Labels = Annotated[dict[str, LabelValue], Field(max_length=64)]
"""Labels as Kubernetes has them. Their keys are looked at by a rule."""

Store = Literal["postgres", "volume", "pod"]
Key = Literal["none", "fresh", "stable", "derived", "order", "run-scoped", "saved-random"]
Resume = Literal["continue", "resend", "fork"]
KillMethod = Literal["sigkill", "delete-pod", "evict", "out-of-memory", "exit", "freeze"]

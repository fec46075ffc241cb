"""Validation refuses what a cluster refuses, in the words that an API server was heard to use.

What it said is in tests/objects/answers.yaml; tests/cluster compares these with a server that is there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from killpoint.api.available import Where
from killpoint.api.changes import change_problems
from killpoint.api.load import load
from killpoint.api.problems import Problem, ProblemsError
from tests.objects.corpus import Sample, answers, bad, good
from tests.unit.api.samples import CATALOG

BAD, GOOD, ANSWERS = bad(), good(), answers()
KEY = re.compile(r"\[([^]0-9][^]]*)\]")
"""A map's key as the server writes it in some paths: ``share[lost]``. In others it writes ``share.lost``."""
OTHER_WORDS: Mapping[str, str] = {
    "another version": "the server has this kind in one version only, and knows nothing of the rest",
    "another kind": "the server compares it with the address of the request",
    "no version": "the server compares it with the address of the request",
    "no kind": "the server cannot tell what it is",
    "a name that is a number": "the server reads metadata into Go types before anything else",
    "a name that is a list": "the server reads metadata into Go types before anything else",
    "a label that is a number": "the server reads metadata into Go types before anything else",
    "an annotation that is a mapping": "the server reads metadata into Go types before anything else",
}
"""Objects of which the server says the same in other words → why."""


def problems_in(sample: Sample) -> tuple[Problem, ...]:
    """What ``killpoint validate --cluster`` says, and what is said of a change."""
    found: list[Problem] = []
    if sample.before is not None:
        found += change_problems(load(sample.before).spec, load(sample.text).spec)
    try:
        load(sample.text, catalog=CATALOG, where=Where.CLUSTER)
    except ProblemsError as error:
        found += error.problems
    return tuple(found)


def says(problem: Problem, answer: str) -> bool:
    """Whether the answer is this problem: the same words, about this place or what is around it."""
    if f": {problem.message}" in answer and not answer.startswith(("spec", "metadata", "<nil>")):
        return True  # about the document as a text: it names no place
    path, _, message = answer.partition(": ")
    path = KEY.sub(r".\1", path)
    place = problem.path == path or problem.path.startswith((f"{path}.", f"{path}["))
    return place and (message == problem.message or message.startswith(f"{problem.message}; "))


def test_the_corpus_is_large_and_each_object_of_it_has_an_answer() -> None:
    names = [sample.name for sample in BAD]
    assert len(names) >= 200
    assert len(set(names)) == len(names)
    assert set(names) == set(ANSWERS), "run: python -m tests.objects.record KUBECONFIG"


@pytest.mark.parametrize("sample", BAD, ids=str)
def test_a_bad_object_is_refused_in_the_servers_words_or_with_a_remedy(sample: Sample) -> None:
    problems, answered = problems_in(sample), ANSWERS[sample.name]
    assert problems, f"the server says {answered}"
    if not answered:
        assert [problem for problem in problems if not problem.path or not problem.suggestion] == []
    elif sample.name not in OTHER_WORDS:
        common = [answer for answer in answered if any(says(problem, answer) for problem in problems)]
        assert common, f"{[(problem.path, problem.message) for problem in problems]} for {answered}"


@pytest.mark.parametrize("name", OTHER_WORDS)
def test_what_is_said_in_other_words_still_has_none_in_common(name: str) -> None:
    (sample,) = (sample for sample in BAD if sample.name == name)
    assert not any(says(problem, answer) for problem in problems_in(sample) for answer in ANSWERS[name])


@pytest.mark.parametrize("sample", GOOD, ids=str)
def test_what_is_just_allowed_is_taken(sample: Sample) -> None:
    assert problems_in(sample) == ()

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from killpoint.api.load import BYTES_MAX, from_fields, load, load_file
from killpoint.api.problems import Position, Problem, ProblemsError
from tests.unit.api.samples import CATALOG, HEAD, document


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """A document and the problems that have to be found in it: path, words, place."""

    name: str
    text: str
    problems: tuple[tuple[str, tuple[str, ...], str | None], ...]


def corpus() -> list[Bad]:
    entries = yaml.safe_load(Path(__file__).with_name("bad.yaml").read_text(encoding="utf-8"))
    return [
        Bad(
            name=entry["name"],
            text=entry["text"] if "text" in entry else document(entry["spec"]),
            problems=tuple(
                (problem["path"], tuple(map(str, problem["words"])), problem.get("at")) for problem in entry["problems"]
            ),
        )
        for entry in entries
    ]


def problems_in(data: str | bytes) -> tuple[Problem, ...]:
    with pytest.raises(ProblemsError) as caught:
        load(data, source="bad.yaml", catalog=CATALOG)
    assert str(caught.value).startswith("bad.yaml:")
    return caught.value.problems


@pytest.mark.parametrize("bad", corpus(), ids=lambda bad: bad.name)
def test_each_mistake_gets_one_clear_message_at_its_place(bad: Bad) -> None:
    problems = problems_in(bad.text)
    assert [problem.path for problem in problems] == [path for path, _, _ in bad.problems], str(problems)
    for problem, (_, words, place) in zip(problems, bad.problems, strict=True):
        said = str(problem)
        assert [word for word in words if word not in said] == [], said
        if place is not None:
            line, column = map(int, place.split(":"))
            assert problem.position == Position(line=line, column=column), said


def test_a_default_that_a_setup_lacks_is_said_to_be_one_and_what_to_add() -> None:
    default = "matrix: {setup: [shell], kill: [{at: [charge.after]}]}\n"
    (problem,) = problems_in(document(default))
    assert (problem.message, problem.suggestion) == (
        'Unsupported value: "postgres", the default of store: supported values: "volume"',
        "add store: [volume]",
    )
    (problem,) = problems_in(document(default.replace("kill:", "store: [postgres], kill:")))
    assert (problem.message, problem.suggestion) == (
        'Unsupported value: "postgres": supported values: "volume"',
        "use one of these",
    )


def test_problems_are_in_the_order_of_the_text() -> None:
    problems = problems_in(document("trials: 0\nseed: -1\nmatrix: {key: [x], setup: [y]}\n"))
    assert [problem.path for problem in problems] == [
        "spec.trials",
        "spec.seed",
        "spec.matrix.key[0]",
        "spec.matrix.setup[0]",
    ]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError, match=r"absent\.yaml: the file cannot be read: no such file or directory"):
        load_file(tmp_path / "absent.yaml", CATALOG)


def test_a_folder_is_no_experiment(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError, match="the file cannot be read: is a directory"):
        load_file(tmp_path, CATALOG)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"spec: 1\n\xff\n", "2:1: not UTF-8: the byte 0xff"),
        ("spec: 1".encode("utf-16"), "not a text file"),
        (b"\x7fELF\x00\x00", "not a text file"),
        (b"# " + b"x" * BYTES_MAX, "Too long: may not be more than 1048576 bytes"),
    ],
)
def test_what_is_no_text_is_refused_before_it_is_read(data: bytes, words: str) -> None:
    (problem,) = problems_in(data)
    assert words in str(problem)


def test_an_alias_bomb_is_refused_without_being_unfolded() -> None:
    names = itertools.pairwise("abcdefghi")
    levels = "\n".join(f"{name}: &{name} [{', '.join(['*' + last] * 9)}]" for last, name in names)
    problems = problems_in(f"a: &a [x, x]\n{levels}\n")
    assert all("aliases are not supported" in str(problem) for problem in problems if "[" in problem.path)


def test_a_byte_order_mark_is_no_mistake() -> None:
    loaded = load(b"\xef\xbb\xbf" + document("matrix: {setup: [langgraph]}").encode(), catalog=CATALOG)
    assert loaded.metadata.name == "sample"


def test_what_a_server_adds_is_no_mistake() -> None:
    text = document("matrix: {setup: [langgraph]}").replace(
        "{name: sample}",
        "{name: sample, generateName: sam, uid: x, resourceVersion: '5', creationTimestamp: '2026-11-30T00:00:00Z'}",
    )
    assert load(f"{text}\nstatus: {{phase: Running}}\n", catalog=CATALOG).metadata.name == "sample"


def test_an_experiment_stored_as_json_is_read_as_it_was() -> None:
    loaded = load(document("matrix: {setup: [langgraph], kill: [{at: [charge.after]}]}"), catalog=CATALOG)
    assert from_fields(loaded.model_dump(mode="json")) == loaded, "with the nulls of what is not given"


def test_a_stored_experiment_that_is_damaged_has_problems_too() -> None:
    with pytest.raises(ProblemsError, match=r"stored: spec\.matrix\.setup: Required value"):
        from_fields({**yaml.safe_load(HEAD), "spec": {"matrix": {}}}, source="stored")


def test_a_later_axis_at_its_only_value_of_today_is_no_mistake() -> None:
    loaded = load(document("matrix: {setup: [langgraph], delivery: [{mode: once}]}"), catalog=CATALOG)
    assert loaded.spec.matrix.delivery[0].mode == "once"


def test_scalars_mean_what_they_mean_to_a_kubernetes_client() -> None:
    spec = "matrix: {setup: [langgraph]}\nworkers: [{setup: mine, command: [2026-11-30, 1:30, a:b]}]\ntrials: 0x10"
    loaded = load(document(spec), catalog=CATALOG)
    assert loaded.spec.workers[0].command == ("2026-11-30", "1:30", "a:b")
    assert loaded.spec.trials == 16

from textwrap import dedent

import pytest

from tools.check_house import (
    FUNCTION_LINES_MAX,
    LONG,
    MODULE_LINES_MAX,
    REGISTRIES,
    Breach,
    File,
    breaches,
)


def whats(path: str, text: str) -> list[str]:
    """What is said of one file, without its path."""
    return [breach.what for breach in breaches([File(path=path, text=dedent(text))])]


@pytest.mark.parametrize(
    "folder", ["operator", "workloads", "workloads/langgraph", "workloads/crewai/src", "tests/unit", "tools"]
)
def test_a_folder_that_would_shadow_a_package_must_not_be_one(folder: str) -> None:
    assert whats(f"{folder}/__init__.py", "") == [f"{folder}/ must not be a package: remove this file"]


@pytest.mark.parametrize("folder", ["operator/killpoint", "workloads/langgraph/src/killpoint_langgraph"])
def test_a_package_below_those_folders_is_welcome(folder: str) -> None:
    assert whats(f"{folder}/__init__.py", "") == []


@pytest.mark.parametrize("host", REGISTRIES)
def test_every_registry_is_found_by_line_in_any_kind_of_file(host: str) -> None:
    found = breaches([File(path="docs/x.md", text=f"first\nsee HTTPS://files.{host.upper()}/simple\n")])
    assert found == [Breach(path="docs/x.md", line=2, what=f"names the registry {host}")]


def test_a_host_that_only_ends_like_a_registry_is_none() -> None:
    assert whats("docs/x.md", f"https://my-{REGISTRIES[0]} and {REGISTRIES[0]}anize") == []


PIN = (
    "httpx==0.28.1 ; python_version < '3.12' \\\n    --hash=sha256:abc \\\n    --hash=sha256:def\n    # via killpoint\n"
)


def test_a_lock_of_pins_with_hashes_is_clean() -> None:
    assert whats("workloads/x/requirements.lock", f"# a comment\n{PIN}") == []


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://mirror.example/simple",
        "--find-links /opt/wheels",
        "httpx @ https://mirror.example/httpx.whl \\",
        "-e ../worker",
        "httpx>=0.28 \\",
    ],
)
def test_a_lock_holds_nothing_but_pins(line: str) -> None:
    assert "only `name==version` with hashes belongs into a lock" in whats("requirements.lock", f"{PIN}{line}\n")


def test_a_pin_without_a_hash_is_found() -> None:
    assert whats("requirements.lock", f"rich==15.0.0 \\\n    # via killpoint\n{PIN}") == ["rich==15.0.0 has no hash"]


def test_a_lock_that_names_registries_by_design_is_refused() -> None:
    assert len(whats("workloads/x/uv.lock", "")) == 1


def function(lines: int) -> str:
    return "def work() -> None:\n" + "    pass\n" * (lines - 1)


def test_a_function_may_be_as_long_as_the_limit_and_no_longer() -> None:
    assert whats("tools/x.py", function(FUNCTION_LINES_MAX)) == []
    assert len(whats("tools/x.py", function(FUNCTION_LINES_MAX + 1))) == 1


def test_a_long_module_needs_a_reason() -> None:
    text = "x = 1\n" * MODULE_LINES_MAX
    assert whats("tools/x.py", text) == []
    assert len(whats("tools/x.py", text + "x = 2\n")) == 1
    assert whats("tools/x.py", f"{LONG}it is one table\n{text}") == []


@pytest.mark.parametrize("path", ["operator/killpoint/utils.py", "tests/helpers/trees.py"])
def test_names_that_say_nothing_are_refused(path: str) -> None:
    assert len(whats(path, "")) == 1


def test_a_function_is_named_for_what_it_does_not_for_being_called() -> None:
    assert whats("tools/x.py", "def handle_end() -> None: ...") == ["handle_end: name it for what it does"]


def test_code_that_is_not_there_yet_does_not_pretend() -> None:
    source = """
        def later() -> None:
            raise NotImplementedError("soon")
    """
    assert whats("tools/x.py", source) == ["raises NotImplementedError"]


@pytest.mark.parametrize(
    "body",
    ["assert x", "with pytest.raises(ValueError): x()", "with pytest.warns(UserWarning): x()", "assert_met(x)"],
)
def test_a_test_that_can_fail_on_purpose_is_one(body: str) -> None:
    assert whats("tests/unit/test_x.py", f"def test_x() -> None:\n    {body}\n") == []


def test_a_test_that_claims_nothing_is_found() -> None:
    assert whats("tests/unit/test_x.py", "async def test_x() -> None:\n    print(1)\n") == ["test_x asserts nothing"]


def test_a_file_that_does_not_parse_is_a_breach_and_not_a_crash() -> None:
    assert any("does not parse" in what for what in whats("tools/x.py", "def ("))

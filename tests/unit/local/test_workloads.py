from __future__ import annotations

from pathlib import Path

import pytest

from killpoint.local.errors import WorkloadsError
from killpoint.local.stack import installed_workloads
from killpoint.local.workloads import Workloads, read_setups
from killpoint.model.catalog import Parameter

WHOLE = """
[[setup]]
name = "sample"
module = "killpoint_sample"
summary = "A sample"
stores = ["postgres", "volume"]
resumes = ["continue"]
keys = ["none", "stable"]
workflows = ["charge"]
points = ["charge.before", "charge.after"]
versions = ["sample"]
forkable = true

[setup.parameters]
durability = { values = ["async", "sync"], default = "async" }
"""


def _file(folder: Path, text: str) -> Path:
    project = folder / "sample"
    project.mkdir(parents=True)
    file = project / "setup.toml"
    file.write_text(text)
    return file


def test_a_whole_entry_is_read(tmp_path: Path) -> None:
    (setup,) = read_setups(_file(tmp_path, WHOLE))

    assert (setup.name, setup.project, setup.module, setup.command) == ("sample", "sample", "killpoint_sample", ())
    assert setup.stores == ("postgres", "volume")
    assert setup.parameters == (Parameter(name="durability", values=("async", "sync"), default="async"),)
    assert setup.forkable
    assert not setup.needs_database


def test_a_command_may_stand_for_the_module(tmp_path: Path) -> None:
    text = WHOLE.replace('module = "killpoint_sample"', 'command = ["node", "worker.js"]')
    (setup,) = read_setups(_file(tmp_path, text))
    assert (setup.module, setup.command) == (None, ("node", "worker.js"))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('summary = "A sample"', "", "setup[0].summary: expected a text"),
        ('summary = "A sample"', "summary = 3", "setup[0].summary: expected a text"),
        ('name = "sample"', 'name = "A Sample"', "setup[0].name: expected lower-case letters, digits and '-'"),
        ('keys = ["none", "stable"]', "keys = []", "setup[0].keys: expected a list of one or more texts"),
        ('keys = ["none", "stable"]', 'keys = ["none", "none"]', "setup[0].keys: expected each value once"),
        ("forkable = true", "forkable = 1", "setup[0].forkable: expected true or false"),
        ("forkable = true", "forkabel = true", "setup[0].forkabel: expected one of command, forkable, image, keys"),
        ('module = "killpoint_sample"', "", "setup[0].module: expected either module or command"),
        (
            'module = "killpoint_sample"',
            'module = "a; rm -rf"',
            "setup[0].module: expected the name of a Python module",
        ),
        (
            'default = "async"',
            'default = "never"',
            "setup[0].parameters.durability.default: expected one of async, sync",
        ),
        ('values = ["async", "sync"], ', "", "setup[0].parameters.durability: expected { values = [texts]"),
    ],
)
def test_what_is_wrong_is_said_with_file_key_and_what_was_expected(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    assert old in WHOLE
    file = _file(tmp_path, WHOLE.replace(old, new))
    with pytest.raises(WorkloadsError) as wrong:
        read_setups(file)
    assert str(wrong.value).startswith(f"{file}: {expected}")


@pytest.mark.parametrize("text", ["", "setup = 3", "[setup]\nname = 'a'", "[[setup]]\n[other]"])
def test_a_file_without_setups_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(WorkloadsError, match=r"setup.*: expected"):
        read_setups(_file(tmp_path, text))


def test_a_file_that_is_no_toml_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(WorkloadsError, match=r"cannot be read: .*at line 1, column"):
        read_setups(_file(tmp_path, "[[setup = 1"))


def test_a_name_that_two_workloads_have_is_refused(tmp_path: Path) -> None:
    for project in ("one", "two"):
        (tmp_path / project).mkdir()
        (tmp_path / project / "setup.toml").write_text(WHOLE)
    with pytest.raises(WorkloadsError, match="'sample' is in one already"):
        Workloads(folder=tmp_path).catalog()


def test_a_checkouts_workloads_win_and_the_packaged_ones_are_found(tmp_path: Path) -> None:
    package = tmp_path / "operator" / "killpoint"
    (package / "_data" / "workloads" / "worker").mkdir(parents=True)
    assert Workloads.find(package).folder == package / "_data" / "workloads"

    (tmp_path / "workloads" / "worker").mkdir(parents=True)
    assert Workloads.find(package).folder == tmp_path / "workloads"


def test_a_folder_that_happens_to_be_near_an_installed_package_is_not_taken(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "site-packages" / "killpoint"
    (tmp_path / "lib" / "workloads" / "worker").mkdir(parents=True)
    package.mkdir(parents=True)
    with pytest.raises(WorkloadsError, match="killpoint's workloads are missing"):
        Workloads.find(package)


def test_every_setup_of_this_checkout_can_be_read() -> None:
    catalog = installed_workloads().catalog()
    assert {"langgraph", "llamaindex", "crewai-persist"} <= {setup.name for setup in catalog}

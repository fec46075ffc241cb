"""Check what no ready-made tool checks: rules of this house about files, locks and the shape of code.

    python -m tools.check_house     prints every breach as path:line: what is wrong; exit 1 if there is any

Reads the files that git tracks or would track. Each rule is a pure function from files to breaches.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 500
LONG = "# house: long because "
"""A comment that starts so, with a reason, lets a module be longer than MODULE_LINES_MAX."""

NO_PACKAGE = re.compile(r"^(operator|workloads|workloads/[^/]+|workloads/[^/]+/src|tests|tests/.+|tools|bench)$")
"""Folders that an __init__.py would make a package of: operator/ would shadow the standard library's module, a
workload's folder its framework, and tests are imported by path."""

REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("yarnpkg", "com"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("sum", "golang", "org"),
        ("maven", "org"),
        ("maven", "apache", "org"),
        ("debian", "org"),
        ("ubuntu", "com"),
        ("alpinelinux", "org"),
        ("anaconda", "org"),
        ("rubygems", "org"),
    )
)
"""Package registries, none of which a file may name: where packages come from is up to whoever installs. They are
put together here so that this file does not name them either."""

FOREIGN_LOCKS = frozenset({"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "package-lock.json"})
"""Locks that write a registry's host into their entries."""

EMPTY_WORDS = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers"})
"""Names for modules that say nothing of what is in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A tracked file: its path from the root, with slashes, and its text."""

    path: str
    text: str

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def is_python(self) -> bool:
        return self.name.endswith(".py")

    @property
    def folder(self) -> str:
        return str(PurePosixPath(self.path).parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One place that breaks a rule. ``line`` counts from 1; 0 is the file as a whole."""

    path: str
    line: int = 0
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}" if self.line else f"{self.path}: {self.what}"


def shadowing_packages(file: File) -> Iterator[Breach]:
    """A folder that must never be a package is none."""
    if file.name == "__init__.py" and NO_PACKAGE.match(file.folder):
        yield Breach(path=file.path, what=f"{file.folder}/ must not be a package: remove this file")


def registry_hosts(file: File) -> Iterator[Breach]:
    """No file names a package registry's host."""
    for number, line in enumerate(file.text.splitlines(), start=1):
        for host in REGISTRIES:
            if re.search(rf"(?<![\w-]){re.escape(host)}(?![\w-])", line, re.IGNORECASE):
                yield Breach(path=file.path, line=number, what=f"names the registry {host}")


def lock_lines(file: File) -> Iterator[Breach]:
    """A lock pins by version and hash, from no index and no address."""
    if file.name in FOREIGN_LOCKS:
        yield Breach(path=file.path, what="this kind of lock names a registry in its entries: use requirements.lock")
    if not (file.name.startswith("requirements") and file.name.endswith(".lock")):
        return
    entry = re.compile(r"^[A-Za-z0-9][^\s=]*==\S+( ;[^\\]*)? ?\\$")
    for number, line in enumerate(file.text.splitlines(), start=1):
        if line and not line.startswith((" ", "#")) and not entry.match(line):
            yield Breach(path=file.path, line=number, what="only `name==version` with hashes belongs into a lock")
    for entry_text in re.split(r"^(?=\S)", file.text, flags=re.MULTILINE):
        if "==" in entry_text.partition("\n")[0] and "--hash=sha256:" not in entry_text:
            yield Breach(path=file.path, what=f"{entry_text.split()[0]} has no hash")


def long_code(file: File) -> Iterator[Breach]:
    """A function has at most 70 lines; a module has at most 500, or a reason."""
    lines = len(file.text.splitlines())
    if file.is_python and lines > MODULE_LINES_MAX and LONG not in file.text:
        what = f"{lines} lines: split it (at most {MODULE_LINES_MAX}), or write '{LONG}…'"
        yield Breach(path=file.path, what=what)
    for function in functions(file):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        if length > FUNCTION_LINES_MAX:
            what = f"{function.name} has {length} lines: split it (at most {FUNCTION_LINES_MAX})"
            yield Breach(path=file.path, line=function.lineno, what=what)


LIBRARY_NAMES = frozenset({"handle_starttag", "handle_startendtag", "handle_endtag", "handle_data"})
"""Names that a library calls us by: html.parser.HTMLParser."""


def empty_words(file: File) -> Iterator[Breach]:
    """Modules, packages and functions are named for what they do."""
    for part in PurePosixPath(file.path).with_suffix("").parts:
        if file.is_python and part in EMPTY_WORDS:
            yield Breach(path=file.path, what=f"'{part}' says nothing of what is in it")
    for function in functions(file):
        if function.name.startswith("handle_") and function.name not in LIBRARY_NAMES:
            yield Breach(path=file.path, line=function.lineno, what=f"{function.name}: name it for what it does")


def unfinished_code(file: File) -> Iterator[Breach]:
    """Nothing raises NotImplementedError: what is not there yet has no name yet."""
    for node in nodes(file):
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node):
            yield Breach(path=file.path, line=node.lineno, what="raises NotImplementedError")


def claimless_tests(file: File) -> Iterator[Breach]:
    """Every test asserts: by `assert`, by expecting an exception or a warning, or by a function named assert_…."""
    if not (file.path.startswith("tests/") and file.name.startswith("test_")):
        return
    for function in functions(file):
        if function.name.startswith("test_") and not any(asserts(node) for node in ast.walk(function)):
            yield Breach(path=file.path, line=function.lineno, what=f"{function.name} asserts nothing")


def nodes(file: File) -> Iterator[ast.AST]:
    """Every node of a Python file; none of any other file. Raises SyntaxError."""
    if file.is_python:
        yield from ast.walk(ast.parse(file.text))


def functions(file: File) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a Python file, methods and inner ones too."""
    for node in nodes(file):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def asserts(node: ast.AST) -> bool:
    """Whether this node can make a test fail on purpose."""
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    return ast.unparse(node.func).rpartition(".")[2].startswith(("raises", "warns", "assert_"))


RULES: tuple[Callable[[File], Iterator[Breach]], ...] = (
    shadowing_packages,
    registry_hosts,
    lock_lines,
    long_code,
    empty_words,
    unfinished_code,
    claimless_tests,
)


def breaches(files: list[File]) -> list[Breach]:
    """All breaches of all rules, by path and line. A Python file that does not parse is one breach."""
    found: list[Breach] = []
    for file in files:
        try:
            found += [breach for rule in RULES for breach in rule(file)]
        except SyntaxError as error:
            found.append(Breach(path=file.path, line=error.lineno or 0, what=f"does not parse: {error.msg}"))
    return sorted(found, key=lambda breach: (breach.path, breach.line, breach.what))


def tracked(root: Path) -> list[File]:
    """The text files that git tracks under root, or would track. Binary files say nothing to these rules."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    files: list[File] = []
    for path in sorted(set(filter(None, listed.split("\0")))):
        place = root / path
        if not place.is_file() or place.is_symlink():
            continue
        content = place.read_bytes()
        if b"\0" not in content:
            files.append(File(path=path, text=content.decode("utf-8")))
    return files


def main() -> int:
    """The exit code: 0 no breach, 1 some."""
    found = breaches(tracked(Path.cwd()))
    for breach in found:
        print(breach)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

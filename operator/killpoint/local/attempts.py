"""The files of an attempt, and what they say of its end.

<run>/attempts/<attempt>/launched          made first: who it is, its nonce, then its pid
                         termination.log   the worker's own words
                         output.log        its stdout and stderr
                         ended             how it ended, once that was seen
                         home/             its HOME
<run>/volumes/<trial>/                     files that survive an attempt
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from killpoint.core.contract import Reading, read_termination, without_secrets
from killpoint.core.points import OWN_EXIT
from killpoint.local.errors import last_lines
from killpoint.local.processes import Process
from killpoint.model.cells import AttemptId
from killpoint.model.evidence import AttemptEnd, EndReason

LOG_BYTES_MAX = 65_536
_SIGNALED = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """What was written down of a start."""

    nonce: str
    process: Process | None = None
    started_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What was written down of an end."""

    reason: EndReason
    code: int | None = None
    at_ms: int
    fault: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFolder:
    """One attempt's files."""

    name: str
    folder: Path

    @property
    def termination_log(self) -> Path:
        return self.folder / "termination.log"

    @property
    def output(self) -> Path:
        return self.folder / "output.log"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def make(self, nonce: str) -> bool:
        """Lay out a new attempt. False: it was laid out before, so it must not be started again."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.folder.mkdir()
        except FileExistsError:
            return False
        self.write_launched(Launched(nonce=nonce))
        self.home.mkdir()
        return True

    def write_launched(self, launched: Launched) -> None:
        _write(self.folder / "launched", json.dumps(asdict(launched)))

    def write_ended(self, ended: Ended) -> None:
        _write(self.folder / "ended", json.dumps(asdict(ended)))

    def launched(self) -> Launched | None:
        """None: the attempt is unknown here. One that was killed while being laid out has no nonce."""
        if not self.folder.is_dir():
            return None
        try:
            said = json.loads((self.folder / "launched").read_text())
            process = Process(**said["process"]) if said["process"] else None
            return Launched(nonce=said["nonce"], process=process, started_ms=said["started_ms"])
        except (OSError, ValueError, KeyError, TypeError):
            return Launched(nonce="")

    def ended(self) -> Ended | None:
        """None: nobody wrote its end down."""
        try:
            said = json.loads((self.folder / "ended").read_text())
            return Ended(
                reason=EndReason(said["reason"]), code=said["code"], at_ms=int(said["at_ms"]), fault=said["fault"]
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def read(self, nonce: str) -> Reading:
        """What the worker has said so far."""
        return read_termination(_tail(self.termination_log), attempt=self.name, nonce=nonce)

    def lines(self) -> int:
        """How many lines the termination log has so far."""
        return _tail(self.termination_log).count("\n")

    def end(self, launched: Launched, ended: Ended) -> AttemptEnd:
        """The end as evidence: the exit as it was seen, and what the log holds."""
        reading = self.read(launched.nonce)
        return AttemptEnd(
            reason=ended.reason,
            exit_code=ended.code,
            at_ms=ended.at_ms,
            started_ms=launched.started_ms,
            points=reading.points,
            points_left_out=reading.points_left_out,
            outcome=reading.outcome,
            fault=ended.fault or reading.fault or self._silence(ended, reading),
        )

    def _silence(self, ended: Ended, reading: Reading) -> str | None:
        """What is wrong with an attempt that ended by itself and said too little."""
        if ended.reason is not EndReason.EXITED or reading.outcome is not None:
            return None
        if reading.header and ended.code == OWN_EXIT:
            return None  # leaving without a word is one of the ways to be killed at a point
        said = without_secrets(last_lines(self.output, 3))
        missing = "an outcome" if reading.header else "a line in its termination log"
        return f"it ended with exit {ended.code} without {missing}" + (
            f"; its output ends with:\n{said}" if said else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """One experiment run's files."""

    folder: Path

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    def attempt(self, attempt: AttemptId) -> AttemptFolder:
        return AttemptFolder(name=str(attempt), folder=self.attempts_folder / str(attempt))

    def attempts(self) -> tuple[AttemptFolder, ...]:
        """Every attempt that was ever laid out, whatever its name says: only its files matter here."""
        return tuple(
            AttemptFolder(name=folder.name, folder=folder) for folder in sorted(self.attempts_folder.glob("*"))
        )

    def volume(self, attempt: AttemptId) -> Path:
        return self.folder / "volumes" / str(attempt.trial)

    @property
    def attempts_folder(self) -> Path:
        return self.folder / "attempts"

    @property
    def launchers(self) -> Path:
        return self.folder / "launchers"

    def launcher(self, setup: str) -> Path:
        return self.launchers / setup


def ended_of(*, code: int | None, signal: int | None, at_ms: int, killed: bool) -> Ended:
    """An end as the launcher saw it; ``killed``: the harness had asked for it."""
    if signal is None:
        return Ended(reason=EndReason.EXITED, code=code, at_ms=at_ms)
    reason = EndReason.TIMED_OUT if killed else EndReason.SIGNALED
    return Ended(reason=reason, code=_SIGNALED + signal, at_ms=at_ms)


def _tail(file: Path) -> str:
    try:
        with file.open("rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - LOG_BYTES_MAX))
            return log.read().decode(errors="replace")
    except OSError:
        return ""


def _write(file: Path, text: str) -> None:
    """Whole or not at all: a killed harness leaves no half of it."""
    making = file.with_name(file.name + ".making")
    making.write_text(text)
    making.rename(file)

"""The substrate of this machine: attempts are processes, started by one launcher per setup.

What an earlier, killed harness left of the same run is made certain to be dead before anything else is done, so an
attempt without a known end has ``vanished`` and nothing of it can act any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import signal
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self, assert_never

from killpoint.databases.administration import Databases, ExperimentDatabase
from killpoint.databases.errors import DatabaseError
from killpoint.local import launcher as reports
from killpoint.local.attempts import AttemptFolder, Ended, Launched, RunFolder, ended_of
from killpoint.local.errors import ProcessLeft, RunInUse, WorkerNotStarted
from killpoint.local.launcher import Launcher, LauncherGone, LauncherReport
from killpoint.local.launchers import Launchers, left_behind
from killpoint.local.locks import FileLock
from killpoint.local.processes import Process, at_home_below, identify, kill_session, see_dead
from killpoint.local.progress import Progress, Report, Stage, silent
from killpoint.local.workers import Mode, Worker
from killpoint.model.cells import AttemptId, Method
from killpoint.model.evidence import EndReason
from killpoint.model.observations import Observation
from killpoint.ports import Launch

STARTED_SECONDS_MAX = 15.0
DEAD_SECONDS_MAX = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SubstrateSettings:
    """What the substrate works with."""

    run: RunFolder
    workers: Mapping[str, Worker]
    """By the setup's name."""
    mode: Mode
    databases: Databases = field(repr=False)
    database: ExperimentDatabase = field(repr=False)
    payments_url: str
    user: Mapping[str, str] = field(repr=False)
    """The environment of the harness."""
    control_url: str | None = None
    keep: bool = False
    """Volumes stay after their trial."""
    report: Report = field(repr=False, default=silent)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What this process knows of an attempt."""

    folder: AttemptFolder
    launched: Launched
    started: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it is known whether it runs."""
    launcher: Launcher | None = None
    """The one that was asked to start it."""
    killed: bool = False
    """The harness asked for its end."""
    ended: Ended | None = None
    observed: Observation | None = None
    """Its end, read once."""


class LocalSubstrate:
    """Implements ``ports.Substrate``. An async context: at its end no process is left.

    Raises RunInUse, ProcessLeft on entry.
    """

    def __init__(self, settings: SubstrateSettings) -> None:
        """Raises ModeNotPossible."""
        self._settings = settings
        self._launchers = Launchers(
            {
                name: worker.launcher(settings.mode, folder=settings.run.launcher(name), user=settings.user)
                for name, worker in settings.workers.items()
            },
            self._take,
        )
        self._known: dict[AttemptId, _Known] = {}
        self._names: dict[str, AttemptId] = {}
        self._burials: set[asyncio.Task[None]] = set()
        self._ending = False
        self._lock: FileLock | None = None
        self.wake = asyncio.Event()
        """Set whenever an attempt was started or has ended. Whoever waits for it clears it before looking."""

    async def __aenter__(self) -> Self:
        run = self._settings.run
        run.folder.mkdir(parents=True, exist_ok=True)
        self._lock = _only_one(run)
        try:
            await _bury_all(run)
        except BaseException:
            self._lock.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending = True
        try:
            await self._launchers.stop()
            await asyncio.gather(*self._burials)
        finally:
            if self._lock is not None:
                self._lock.close()

    async def warm_up(self) -> None:
        """Start every launcher now, so that the first attempts wait for no import. Raises WorkerNotStarted."""
        await asyncio.gather(*(self._warm_up(setup) for setup in self._settings.workers))

    async def launch(self, launch: Launch) -> bool:
        """Start an attempt; see ``ports.Substrate``."""
        attempt = launch.attempt
        folder = self._settings.run.attempt(attempt)
        nonce = str(launch.assignment["nonce"])
        if attempt in self._known:
            return True
        known = _Known(folder=folder, launched=Launched(nonce=nonce))
        try:
            if not folder.make(nonce):
                return True
            self._known[attempt] = known
            self._names[str(attempt)] = attempt
            environment = self._environment(launch, folder)
            launcher = await self._launchers.of(launch.setup)
        except (LauncherGone, OSError) as error:
            self._known[attempt] = known
            self._end(attempt, Ended(reason=EndReason.NOT_STARTED, at_ms=_now_ms(), fault=str(error)))
            return True
        self._known[attempt] = replace(known, launcher=launcher)
        try:
            await launcher.launch(str(attempt), environment=environment, directory=folder.folder, output=folder.output)
        except LauncherGone as error:
            # It may have taken the command before it died.
            self._bury((attempt,), str(error))
        with contextlib.suppress(TimeoutError):  # it is slow, and will be observed once it runs
            async with asyncio.timeout(STARTED_SECONDS_MAX):
                await known.started.wait()
        return True

    async def kill(self, attempt: AttemptId, method: Method = Method.SIGKILL) -> None:  # noqa: ARG002 - one way here
        """SIGKILL an attempt; see ``ports.Substrate``."""
        known = self._known.get(attempt)
        if known is None or known.ended is not None or known.launcher is None:
            return
        self._known[attempt] = replace(known, killed=True)
        with contextlib.suppress(LauncherGone):  # and so is the attempt
            await known.launcher.signal(str(attempt), signal.SIGKILL)

    async def release(self, attempt: AttemptId) -> None:
        """Nothing is ever frozen here: what parks needs a cluster, and validation says so."""

    async def observe(self, attempts: Sequence[AttemptId]) -> Mapping[AttemptId, Observation]:
        """What is known of these attempts; see ``ports.Substrate``."""
        observed = {attempt: self._observe(attempt) for attempt in attempts}
        return {attempt: seen for attempt, seen in observed.items() if seen is not None}

    async def sessions(self, attempts: Sequence[AttemptId]) -> Mapping[AttemptId, int]:
        """Database sessions of these attempts; see ``ports.Substrate``."""
        names = {str(attempt): attempt for attempt in attempts}
        try:
            found = await self._settings.databases.sessions(self._settings.database.name, list(names))
        except DatabaseError:
            # Could not be asked for, which is not zero.
            return {}
        return {names[name]: number for name, number in found.items()}

    async def clean_up(self, attempts: Sequence[AttemptId]) -> None:
        """Free what finished attempts hold: their homes, and their trials' volumes unless they are kept."""
        run = self._settings.run
        freed = {run.attempt(attempt).home for attempt in attempts}
        if not self._settings.keep:
            freed |= {run.volume(attempt) for attempt in attempts}
        for folder in freed:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _warm_up(self, setup: str) -> None:
        report = self._settings.report
        report(Progress(stage=Stage.WORKERS, subject=setup, text="starting its launcher"))
        try:
            await self._launchers.of(setup)
        except LauncherGone as error:
            raise WorkerNotStarted(
                f"the worker of setup {setup} does not start: {error}",
                remedy=f"Its whole log: {self._settings.run.launcher(setup) / 'launcher.log'}",
            ) from error
        report(Progress(stage=Stage.WORKERS, subject=setup, text="ready", done=True))

    def _environment(self, launch: Launch, folder: AttemptFolder) -> dict[str, str]:
        """What the worker contract puts into an attempt's environment, on top of its launcher's."""
        settings = self._settings
        volume = settings.run.volume(launch.attempt)
        volume.mkdir(parents=True, exist_ok=True)
        variables = {
            "HOME": str(folder.home),
            "KILLPOINT_ASSIGNMENT": json.dumps(launch.assignment, separators=(",", ":")),
            "KILLPOINT_PAYMENTS_URL": settings.payments_url,
            "KILLPOINT_TOKEN": launch.token,
            "KILLPOINT_TERMINATION_LOG": str(folder.termination_log),
            "KILLPOINT_VOLUME": str(volume),
        }
        if launch.store == "postgres" or settings.workers[launch.setup].setup.needs_database:
            variables["KILLPOINT_DATABASE_URL"] = settings.database.for_attempt(str(launch.attempt))
        if settings.control_url is not None:
            variables["KILLPOINT_CONTROL_URL"] = settings.control_url
        return variables

    def _observe(self, attempt: AttemptId) -> Observation | None:
        known = self._known.get(attempt) or self._remembered(attempt)
        if known is None or known.observed is not None:
            return known.observed if known else None
        process = known.launched.process
        observed = Observation(
            attempt=attempt,
            pid=process.pid if process else None,
            started_ms=known.launched.started_ms,
            lines=known.folder.lines(),
            end=known.folder.end(known.launched, known.ended) if known.ended else None,
        )
        if known.ended is not None:
            self._known[attempt] = replace(known, observed=observed)
        return observed

    def _remembered(self, attempt: AttemptId) -> _Known | None:
        """An attempt of an earlier harness, from its files. What was left of that was killed at our start."""
        folder = self._settings.run.attempt(attempt)
        launched = folder.launched()
        if launched is None:
            return None
        ended = folder.ended() or Ended(
            reason=EndReason.VANISHED, at_ms=_now_ms(), fault="the harness that had started it ended before it did"
        )
        known = self._known[attempt] = _Known(folder=folder, launched=launched, ended=ended)
        return known

    def _take(self, launcher: Launcher, report: LauncherReport) -> None:
        if isinstance(report, reports.Gone):
            running = (one for one, known in self._known.items() if known.launcher is launcher and not known.ended)
            self._bury(tuple(running), report.reason)
            return
        attempt = self._names.get(report.id)
        if attempt is None or self._known[attempt].ended is not None:
            return
        match report:
            case reports.Launched():
                self._started(attempt, report)
            case reports.Ended():
                self._ended(attempt, report)
            case reports.Failed():
                self._end(attempt, Ended(reason=EndReason.NOT_STARTED, at_ms=_now_ms(), fault=report.error))
            case _:
                assert_never(report)

    def _started(self, attempt: AttemptId, report: reports.Launched) -> None:
        known = self._known[attempt]
        # Not to be identified: it has ended already, and the report of that comes next.
        process = identify(report.pid) or Process(pid=report.pid, birth="")
        launched = replace(known.launched, process=process, started_ms=report.at_ms)
        self._known[attempt] = replace(known, launched=launched)
        with contextlib.suppress(OSError):  # a full disk: it runs, and a later harness would find it by its HOME
            known.folder.write_launched(launched)
        known.started.set()
        self.wake.set()

    def _ended(self, attempt: AttemptId, report: reports.Ended) -> None:
        if self._ending and report.signal is not None:
            # We are ending, and the launcher kills what is left. That is no kill of the plan: a rerun shall see the
            # attempt as vanished.
            return
        known = self._known[attempt]
        ended = ended_of(code=report.code, signal=report.signal, at_ms=report.at_ms, killed=known.killed)
        left = at_home_below(known.folder.folder)
        if not left:
            self._end(attempt, ended)
            return
        # What it started in a session of its own outlived it, and could still act for it: that is no end yet.
        self._in_background(self._end_with_its_children(attempt, ended, left))

    def _end(self, attempt: AttemptId, ended: Ended) -> None:
        known = self._known[attempt]
        self._known[attempt] = replace(known, ended=ended)
        with contextlib.suppress(OSError):  # a full disk: we know it, and to a later harness it has vanished
            known.folder.write_ended(ended)
        known.started.set()
        self.wake.set()

    def _bury(self, attempts: Sequence[AttemptId], reason: str) -> None:
        """A launcher died: have these attempts seen dead, and then vanished."""
        if attempts and not self._ending:
            self._in_background(self._see_vanished(attempts, reason))

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        burial = asyncio.create_task(work)
        self._burials.add(burial)
        burial.add_done_callback(self._burials.discard)

    async def _end_with_its_children(self, attempt: AttemptId, ended: Ended, left: Sequence[Process]) -> None:
        await _kill_all(left)
        self._end(attempt, ended)

    async def _see_vanished(self, attempts: Sequence[AttemptId], reason: str) -> None:
        """The system kills a launcher's children with it, on Linux; wait until it has."""
        for attempt in attempts:
            known = self._known[attempt]
            process = known.launched.process
            left = (*([process] if process else []), *at_home_below(known.folder.folder))
            await _kill_all(left)
            if self._known[attempt].ended is None:
                self._end(attempt, Ended(reason=EndReason.VANISHED, at_ms=_now_ms(), fault=reason))


def is_executed(run: RunFolder) -> bool:
    """Whether a harness executes a run now."""
    if not run.lock.exists():
        return False
    lock = FileLock(run.lock)
    try:
        return not lock.try_exclusive()
    finally:
        lock.close()


def _only_one(run: RunFolder) -> FileLock:
    """The lock by which one harness executes a run. Raises RunInUse."""
    lock = FileLock(run.lock)
    if not lock.try_exclusive():
        lock.close()
        raise RunInUse(
            f"another killpoint is executing this run ({run.folder})",
            remedy="Wait for it, or end it; what it has done so far is kept.",
        )
    return lock


async def _bury_all(run: RunFolder) -> None:
    """Make certain that nothing of an earlier harness's run lives. Raises ProcessLeft."""
    started = [folder.launched() for folder in run.attempts() if folder.ended() is None]
    attempts = [launched.process for launched in started if launched and launched.process]
    # Launchers first, so that none starts another attempt.
    await _kill_all((*left_behind(run.launchers), *at_home_below(run.launchers)))
    await _kill_all((*attempts, *at_home_below(run.attempts_folder)))


async def _kill_all(processes: Sequence[Process]) -> None:
    for process in processes:
        kill_session(process)
    left = await see_dead(processes, seconds=DEAD_SECONDS_MAX)
    if left:
        pids = ", ".join(str(process.pid) for process in left)
        raise ProcessLeft(
            f"process {pids} of an earlier attempt does not die of SIGKILL after {DEAD_SECONDS_MAX:.0f} s",
            remedy="It hangs in the system (a disk or a network file system that does not answer?); see to that first.",
        )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

"""The commands. Each reads its arguments, calls what does the work and turns the end into an exit code."""

from __future__ import annotations

import asyncio
import codecs
import io
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from killpoint import __version__
from killpoint.api.available import Where
from killpoint.api.catalog import catalog_with
from killpoint.api.changes import change_problems
from killpoint.api.expectations import rules_of
from killpoint.api.load import from_fields, load_file
from killpoint.api.problems import ProblemsError
from killpoint.api.v1alpha1.spec import CrashExperiment
from killpoint.cli import doctor as doctor_
from killpoint.cli.archive import EVIDENCE_FILE, RunCard, cards, read_archive
from killpoint.cli.choose import filtered, replayed
from killpoint.cli.cluster import commands as cluster_commands
from killpoint.cli.cluster.target import Target, is_plugin, target_of
from killpoint.cli.exits import EXITS, Exit, Stop, say, usage_text
from killpoint.cli.interrupts import interruptible
from killpoint.cli.loading import loaded, meant_for
from killpoint.cli.local import LocalRun, Ran, is_running, run_locally
from killpoint.cli.options import Context, ForCluster, InCluster, Kubeconfig, Namespace, OfCluster
from killpoint.cli.output import Format, check_writable, rendered, write
from killpoint.cli.plan import plan_text, size_text
from killpoint.cli.progress import shown
from killpoint.cli.status import status_text
from killpoint.core.judge import judge_safely
from killpoint.core.state import JournalLostError
from killpoint.core.summarize import JudgedTrial, summarize
from killpoint.journal.archive import Archive, ArchiveError, run_of_archive
from killpoint.journal.codec import CodecError
from killpoint.local.home import Home
from killpoint.local.stack import installed_workloads
from killpoint.local.workers import Mode
from killpoint.model.experiment import Experiment
from killpoint.model.findings import Result
from killpoint.model.summary import ExperimentSummary
from killpoint.ports import FencedError, Impediment, JournalUnavailableError

LOCAL_ONLY = ("dsn", "filter", "keep", "mode")
"""Options of ``run`` that mean nothing in a cluster."""
AGAIN = "killpoint report"
"""What shows the last run of this machine once more."""
INTERRUPTED = "interrupted: nothing is left running. The same command goes on from here."

app = typer.Typer(
    name="killpoint",
    help="Kill agent-workflow workers at exact points and prove what happened.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)

ExperimentFile = Annotated[
    Path, typer.Argument(help="An experiment: a YAML file of kind CrashExperiment.", show_default=False)
]
Output = Annotated[Format, typer.Option("--output", "-o", help="The form of the results on stdout.")]
Report = Annotated[
    Path | None, typer.Option("--report", help="Also write the HTML report to this file.", show_default=False)
]
Dsn = Annotated[
    str | None,
    typer.Option(
        "--dsn", envvar="KILLPOINT_DSN", help="A Postgres to use instead of the embedded one.", show_default=False
    ),
]
Filter = Annotated[
    list[str] | None,
    typer.Option(
        "--filter", help="Only cells with this word on this axis: key=none, kill=charge.after.", show_default=False
    ),
]
ModeOption = Annotated[
    Mode, typer.Option("--mode", help="How attempts are started: forked, cold, or forked where possible.")
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the files of each trial for a look at them.")]


def main() -> None:
    """The entry point of ``killpoint`` and ``kubectl-killpoint``."""
    codecs.register_error("killpoint", plain_signs)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="killpoint")
    raise SystemExit(run_command(lambda: app(standalone_mode=False)))


PLAIN = {"≠": "!=", "×": "x", "…": "...", "–": "-", "−": "-", "→": "->", "≤": "<=", "≥": ">="}


def plain_signs(error: UnicodeError) -> tuple[str, int]:
    """What a terminal that lacks a sign shows: other signs with the same meaning, never one that means another."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(sign, "~") for sign in error.object[error.start : error.end]), error.end


def run_command(command: Callable[[], object]) -> int:
    """Run a command and turn its end into an exit code and, where it failed, a message without a traceback."""
    try:
        code = command()
    except Stop as stop:
        say(str(stop))
        return stop.code
    except (ProblemsError, ArchiveError) as error:
        say(str(error))
        return Exit.INVALID
    except Impediment as error:
        say(str(error))
        return Exit.NOT_EXECUTED
    except (JournalUnavailableError, JournalLostError, CodecError, FencedError) as error:
        say(f"{error}\nWhat is finished is kept: the same command goes on from here, --fresh starts anew.")
        return Exit.NOT_EXECUTED
    except typer.TyperException as error:
        called = "kubectl killpoint" if is_plugin() else "killpoint"
        say(f"{usage_text(error)}\n`{called} --help` lists the commands, `{called} COMMAND --help` their options.")
        return Exit.INVALID
    except (KeyboardInterrupt, typer.Abort):
        say("interrupted")
        return Exit.INTERRUPTED
    except Exception:  # noqa: BLE001 - the last place: whatever it is, it is not the experiment's failure (1)
        say(traceback.format_exc())
        say("This is a defect of killpoint. What is finished is kept: the same command goes on from here.")
        return Exit.NOT_EXECUTED
    return code if isinstance(code, int) else Exit.PASS


@app.callback(invoke_without_command=True)
def _root(*, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(f"killpoint {__version__}")  # noqa: T201 - a result
        raise typer.Exit


@app.command()
def run(
    given: typer.Context,
    file: ExperimentFile,
    *,
    output: Output = Format.TABLE,
    report: Report = None,
    dsn: Dsn = None,
    filter: Filter = None,  # noqa: A002 - the option's name
    mode: ModeOption = Mode.AUTO,
    keep: Keep = False,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh", help="Start anew even if this very run was broken off; in a cluster, even if it is over."
        ),
    ] = False,
    cluster: InCluster = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    detach: Annotated[
        bool,
        typer.Option(
            "--detach",
            help="In a cluster: it is waited for all the same, and Ctrl-C leaves it running; else it aborts it.",
        ),
    ] = False,
) -> int:
    """Run an experiment on this machine, or in a cluster; the same command goes on with one that was broken off."""
    check_writable(report)
    target = target_of(cluster=cluster, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if target is not None:
        _refuse(given, LOCAL_ONLY, "runs on this machine")
        document = loaded(file, Where.CLUSTER).document
        archive = cluster_commands.run(document, target, fresh=fresh, detach=detach)
        again = target.within(document.metadata.namespace).command("report", document.metadata.name)
        return _finished(_summary(archive), output, report, again)
    _refuse(given, ("detach",), "runs in a cluster")
    given_file = loaded(file)
    ran = _run(
        file,
        given_file.document,
        filtered(given_file.experiment, filter or []),
        dsn=dsn,
        mode=mode,
        keep=keep,
        fresh=fresh,
        narrowed=bool(filter),
    )
    return _finished(ran.summary, output, report)


@app.command()
def plan(file: ExperimentFile, *, filter: Filter = None, cluster: ForCluster = False) -> int:  # noqa: A002 - the option's name
    """Show the cells, trials and attempts of an experiment; nothing is run."""
    given = loaded(file, meant_for(cluster=cluster))
    print(plan_text(filtered(given.experiment, filter or []), given.catalog))  # noqa: T201 - the result
    return Exit.PASS


@app.command()
def validate(
    file: ExperimentFile,
    *,
    cluster: ForCluster = False,
    replaces: Annotated[
        Path | None,
        typer.Option(
            "--replaces", help="The experiment as it is stored: also say what may not change.", show_default=False
        ),
    ] = None,
) -> int:
    """Say everything that is wrong with an experiment's file."""
    given = loaded(file, meant_for(cluster=cluster))
    if replaces is not None:
        changes = tuple(change_problems(load_file(replaces).spec, given.document.spec))
        if changes:
            raise ProblemsError(changes, str(file))
    print(f"{file}: valid: {size_text(given.experiment, given.catalog)}")  # noqa: T201 - the result
    return Exit.PASS


@app.command()
def report(
    name: Annotated[
        str | None, typer.Argument(help="An experiment's name, or a run's id; the last run if left out.")
    ] = None,
    *,
    output: Output = Format.TABLE,
    evidence: Annotated[
        Path | None, typer.Option("--evidence", help="A file of evidence instead.", show_default=False)
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write to this file instead of stdout.", show_default=False)
    ] = None,
    report: Report = None,
    cluster: OfCluster = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> int:
    """Show a stored run again, or an experiment of a cluster that is over, in any form."""
    target = target_of(cluster=cluster, namespace=namespace, context=context, kubeconfig=kubeconfig)
    summary = _summary(_archive(name, evidence) if target is None else _archive_of(name, evidence, target))
    again = AGAIN if target is None else target.command("report", name or "")
    _write_report(summary, report, again)
    _emit(summary, output, to, again)
    return Exit.PASS


@app.command()
def judge(
    name: Annotated[
        str | None, typer.Argument(help="An experiment's name, or a run's id; the file's experiment if left out.")
    ] = None,
    *,
    expect: Annotated[
        Path, typer.Option("--expect", help="The experiment file whose expectations hold.", show_default=False)
    ],
    evidence: Annotated[
        Path | None, typer.Option("--evidence", help="A file of evidence instead.", show_default=False)
    ] = None,
    output: Output = Format.TABLE,
    cluster: OfCluster = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> int:
    """Judge stored evidence again, by this killpoint's judges and by the expectations of a file. Runs nothing."""
    wanted = name or load_file(expect).metadata.name
    target = target_of(cluster=cluster, namespace=namespace, context=context, kubeconfig=kubeconfig)
    archive = _archive(wanted, evidence) if target is None else _archive_of(wanted, evidence, target)
    where = Where.LOCAL if archive.provenance.substrate == "local" else Where.CLUSTER
    rules = rules_of(loaded(expect, where).document.spec.expect)
    stored = run_of_archive(archive, rules)
    if rules and not any(rule.matches(cell) for rule in rules for cell, _ in stored.cells):
        raise Stop(Exit.INVALID, f"{expect}: none of its expectations is about a cell of {archive.name}'s evidence")
    cells = [(cell, [_judged_again(trial) for trial in trials]) for cell, trials in stored.cells]
    summary = summarize(replace(stored, cells=cells), archive.provenance)
    _emit(summary, output, None)
    return EXITS[summary.result or Result.INCONCLUSIVE]


@app.command()
def replay(
    name: Annotated[str, typer.Argument(help="An experiment's name, or a run's id.", show_default=False)],
    trial: Annotated[str, typer.Argument(help="A trial's id from the report: 7f31e2c0.3", show_default=False)],
    *,
    output: Output = Format.TABLE,
    report: Report = None,
    dsn: Dsn = None,
    mode: ModeOption = Mode.AUTO,
    cluster: OfCluster = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> int:
    """Run one trial of a stored run again on this machine, with its control, and keep its files."""
    target = target_of(cluster=cluster, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if target is None:
        card, path = _stored(name)
        archive, file = read_archive(path), Path(card.file)
    else:
        archive, file = cluster_commands.evidence(name, target), Path(f"{name}.yaml")
    document, experiment = replayed(archive, trial, installed_workloads().catalog())
    ran = _run(file, document, experiment, dsn=dsn, mode=mode, keep=True, fresh=True, narrowed=True)
    say(f"the files of the trial are in {ran.folder}")
    return _finished(ran.summary, output, report)


@app.command()
def status(
    name: Annotated[
        str | None, typer.Argument(help="Only this experiment, or the run of this id; all if left out.")
    ] = None,
    *,
    cluster: OfCluster = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> int:
    """List the runs on this machine, or the experiments of a cluster, and how far they are."""
    target = target_of(cluster=cluster, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if target is not None:
        print(cluster_commands.status(name, target))  # noqa: T201 - the result
        return Exit.PASS
    home = _home()
    known = list(cards(home.state / "runs"))
    found = [card for card in known if name in {None, card.run, card.experiment}]
    if known and not found:
        raise Stop(Exit.INVALID, f"there is no run of {name!r}; `killpoint status` lists those there are")
    running = {card.run for card in found if card.state != "ended" and is_running(home.run(card.run))}
    print(status_text(found, running))  # noqa: T201 - the result
    return Exit.PASS


@app.command()
def doctor(*, dsn: Dsn = None) -> int:
    """Check what a run needs on this machine, and say what to do where something is missing."""
    checks = asyncio.run(doctor_.examine(_home(), dsn))
    print(doctor_.text(checks))  # noqa: T201 - the result
    return Exit.PASS if all(check.ok for check in checks) else Exit.NOT_EXECUTED


def _home() -> Home:
    return Home.from_environment(os.environ)


def _run(
    file: Path,
    document: CrashExperiment,
    experiment: Experiment,
    *,
    dsn: str | None,
    mode: Mode,
    keep: bool,
    fresh: bool,
    narrowed: bool,
) -> Ran:
    workloads = installed_workloads()
    request = LocalRun(
        experiment=experiment,
        document=document,
        catalog=catalog_with(document.spec, workloads.catalog()),
        file=file,
        command=shlex.join(["killpoint", *_without_secrets(sys.argv[1:])]),
        home=_home(),
        workloads=workloads,
        dsn=dsn,
        mode=mode,
        keep=keep,
        fresh=fresh,
        narrowed=narrowed,
    )
    with shown(Console(stderr=True)) as show:
        return interruptible(run_locally(request, show), INTERRUPTED)


def _without_secrets(arguments: list[str]) -> list[str]:
    """The command line as it may be shown: a DSN may hold a password, so it is named, not repeated."""
    kept: list[str] = []
    for argument in arguments:
        if kept and kept[-1] == "--dsn":
            kept.append("$KILLPOINT_DSN")
        else:
            kept.append("--dsn=$KILLPOINT_DSN" if argument.startswith("--dsn=") else argument)
    return kept


def _finished(summary: ExperimentSummary, output: Format, report: Path | None, again: str = AGAIN) -> int:
    try:
        _write_report(summary, report, again)
    finally:  # neither a report that cannot be written nor a closed stdout costs the other
        _emit(summary, output, None, again)
    return EXITS[summary.result or Result.INCONCLUSIVE]


def _write_report(summary: ExperimentSummary, report: Path | None, again: str) -> None:
    if report is not None:
        write(report, rendered(summary, Format.HTML), again)
        say(f"report: {report}")


def _summary(archive: Archive) -> ExperimentSummary:
    """What evidence comes to, by the expectations that the run had."""
    document = from_fields(archive.document)
    return summarize(run_of_archive(archive, rules_of(document.spec.expect)), archive.provenance)


def _refuse(given: typer.Context, names: Sequence[str], where: str) -> None:
    """Raises Stop where an option was given that has no meaning here. One from the environment is let be."""
    for name in names:
        source = given.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise Stop(Exit.INVALID, f"--{name} is for {where}")


def _emit(summary: ExperimentSummary, output: Format, to: Path | None, again: str = AGAIN) -> None:
    if to is not None:
        write(to, rendered(summary, output), again)
        return
    console = Console()
    color = console.is_terminal and not console.no_color
    text = rendered(summary, output, color=color, width=max(80, console.width) if console.is_terminal else 80)
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except OSError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - so that the interpreter's last flush finds a place
        if not isinstance(error, BrokenPipeError):  # a reader that has seen enough is no failure
            reason = error.strerror or str(error)
            raise Stop(
                Exit.NOT_EXECUTED, f"the results cannot be written: {reason}. `{again}` shows them again."
            ) from error


def _archive_of(name: str | None, evidence: Path | None, target: Target) -> Archive:
    """The evidence of an experiment of a cluster. Raises Stop."""
    if evidence is not None:
        raise Stop(Exit.INVALID, "--evidence names a file, so that no cluster is needed: leave one of the two out")
    if name is None:
        raise Stop(Exit.INVALID, f"which experiment? `{target.command('status')}` lists those there are")
    return cluster_commands.evidence(name, target)


def _archive(name: str | None, evidence: Path | None) -> Archive:
    return read_archive(_stored(name)[1] if evidence is None else evidence)


def _stored(name: str | None) -> tuple[RunCard, Path]:
    """The last finished run of this name, or of this id, and its evidence. Raises Stop.

    A part of an experiment (a filter, a replay) is found by its id alone: it never stands for the whole.
    """
    home = _home()
    for card in cards(home.state / "runs"):
        path = home.run(card.run) / EVIDENCE_FILE
        named = name == card.run or (not card.narrowed and name in {None, card.experiment})
        if named and path.exists():
            return card, path
    raise Stop(
        Exit.INVALID,
        f"there is no finished run{'' if name is None else f' of {name!r}'}; `killpoint status` lists those there are",
    )


def _judged_again(trial: JudgedTrial) -> JudgedTrial:
    """A trial that was run gets a new judgement; one that never was stays without."""
    if trial.judgement is None:
        return trial
    return JudgedTrial(evidence=trial.evidence, judgement=judge_safely(trial.evidence), retries=trial.retries)

"""Tests of the tester: the harness is broken on purpose, and the suite has to notice, by the name of a test.

Each mutation is applied to a copy of the sources; the tests named beside it are run against that copy and at least one
of them must fail. (That they pass on the real sources is what the rest of the suite shows.)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.mutation

ROOT = Path(__file__).parents[2]
ENGINE = "tests/unit/engine/test_engine.py"
METHODS = "tests/unit/engine/test_methods.py"
QUIET = "tests/unit/engine/test_quiet.py"
CRASHES = "tests/unit/engine/test_crashes.py"
JUDGE = "tests/unit/core/test_judge.py"
CONTRACT = "tests/unit/core/test_contract.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One way to break the harness, and the tests that must catch it."""

    name: str
    file: str
    before: str
    after: str
    caught_by: tuple[str, ...]


MUTATIONS = (
    Mutation(
        name="undercount: effects are counted once an operation",
        file="core/judge.py",
        before="    counts = Counter(effect.action for effect in evidence.ledger.effects)\n    return",
        after="    counts = Counter(of[1] for of in {e.operation for e in evidence.ledger.effects})\n    return",
        caught_by=(f"{ENGINE}::test_the_table_comes_out_as_the_workers_behave",),
    ),
    Mutation(
        name="overcount: every effect counts twice",
        file="core/judge.py",
        before="counts = Counter(effect.action for effect in evidence.ledger.effects)",
        after="counts = Counter(effect.action for effect in evidence.ledger.effects * 2)",
        caught_by=(f"{ENGINE}::test_the_table_comes_out_as_the_workers_behave",),
    ),
    Mutation(
        name="duplicates are not looked for",
        file="core/judge.py",
        before="        if count > 1:\n",
        after="        if count > 2:\n",
        caught_by=(f"{JUDGE}::test_twice_is_a_duplicate_whatever_the_run_claims",),
    ),
    Mutation(
        name="the ledger is ignored: what a run claims is believed",
        file="core/judge.py",
        before="            for missing in _missing(evidence, view):\n",
        after="            for missing in ():\n",
        caught_by=(f"{JUDGE}::test_finished_without_its_effect_is_lost",),
    ),
    Mutation(
        name="claims are not held against the ledger",
        file="core/judge.py",
        before="            if not (claimed == standing or (twice and claimed and set(claimed) <= set(standing))):\n",
        after="            if len(claimed) > 99:\n",
        caught_by=(f"{JUDGE}::test_claiming_another_effect_is_divergent",),
    ),
    Mutation(
        name="an unread ledger is an empty one",
        file="core/judge.py",
        before='        yield _inconclusive(Cause.LEDGER, evidence.ledger_fault or "the ledger was not read")\n',
        after="",
        caught_by=(f"{JUDGE}::test_taking_the_ledger_away_never_makes_a_pass",),
    ),
    Mutation(
        name="an empty ledger passes for a loss",
        file="core/judge.py",
        before="    if acted and not view.effects and not view.requests:",
        after="    if acted and view.effects and not view.requests:",
        caught_by=(f"{JUDGE}::test_an_empty_ledger_under_a_run_that_acted_is_no_loss",),
    ),
    Mutation(
        name="a kill that does nothing counts: passing the point is enough",
        file="core/points.py",
        before="    if end is None or end.outcome is not None or end.fault is not None:\n",
        after=(
            "    if end is not None and any(passed.spec == attempt.scheduled for passed in end.points):\n"
            "        return True\n"
            "    if end is None or end.outcome is not None or end.fault is not None:\n"
        ),
        caught_by=(f"{ENGINE}::test_a_kill_that_is_not_proven_is_inconclusive",),
    ),
    Mutation(
        name="a kill counts although nobody asked for it",
        file="core/points.py",
        before="            asked = attempt.kill_requested and attempt.parked_ms is not None\n",
        after="            asked = True\n",
        caught_by=(f"{METHODS}::test_a_pod_that_somebody_else_deleted_is_not_our_kill",),
    ),
    Mutation(
        name="a point in the wrong place: before is not checked against the request log",
        file="core/points.py",
        before="            held = len(own) < place.occurrence\n",
        after="            held = True\n",
        caught_by=(f"{ENGINE}::test_a_kill_that_is_not_proven_is_inconclusive",),
    ),
    Mutation(
        name="a point in the wrong place: recorded is believed without a look into the store",
        file="core/points.py",
        before="        held=found,\n",
        after="        held=True,\n",
        caught_by=(f"{ENGINE}::test_a_kill_that_is_not_proven_is_inconclusive",),
    ),
    Mutation(
        name="unconfirmed kills are not mentioned",
        file="core/judge.py",
        before="        elif not _confirmed(attempt):\n",
        after="        elif attempt.end is None:\n",
        caught_by=(
            f"{JUDGE}::test_it_never_passes_in_vain",
            f"{ENGINE}::test_a_kill_that_is_not_proven_is_inconclusive",
        ),
    ),
    Mutation(
        name="a barrier is removed: requests in flight are no reason to wait",
        file="core/decide.py",
        before="    if view.in_flight:\n",
        after="    if view.in_flight > 99:\n",
        caught_by=(f"{QUIET}::test_requests_in_flight_are_not_quiet",),
    ),
    Mutation(
        name="a barrier is removed: open sessions are no reason to wait",
        file="core/decide.py",
        before="        if sessions:\n",
        after="        if sessions > 99:\n",
        caught_by=(f"{QUIET}::test_a_session_that_stays_open_is_not_quiet",),
    ),
    Mutation(
        name="stale evidence: the ledger is not read again at the end",
        file="engine.py",
        before="        late = [] if finish.aborted else await self._late_effects()\n",
        after="        late: list[Event] = []\n",
        caught_by=(f"{QUIET}::test_what_is_committed_after_a_judgement_reopens_the_trial",),
    ),
    Mutation(
        name="stale evidence: a disturbed trial is judged as if nothing had happened",
        file="core/judge.py",
        before="    for disturbance in evidence.disturbances:\n",
        after="    for disturbance in ():\n",
        caught_by=(f"{JUDGE}::test_a_disturbed_trial_is_inconclusive_for_infrastructure",),
    ),
    Mutation(
        name="a second take continues the run of the first",
        file="core/plan.py",
        before='    return f"{journal}-{trial}"\n',
        after='    return f"{journal}-{trial.cell}.{trial.number}"\n',
        caught_by=("tests/unit/core/test_plan.py::test_a_second_take_is_another_run",),
    ),
    Mutation(
        name="everything that failed is run again until it looks good",
        file="core/decide.py",
        before="        any(finding.cause in RETRIED_CAUSES for finding in judgement.findings)\n        and ",
        after="        ",
        caught_by=(f"{QUIET}::test_only_infrastructure_is_retried_and_a_bounded_number_of_times",),
    ),
    Mutation(
        name="retries have no end",
        file="core/decide.py",
        before="(situation.state, take) <= situation.experiment.limits.inconclusive_retries\n",
        after="(situation.state, take) <= 9\n",
        caught_by=(f"{QUIET}::test_only_infrastructure_is_retried_and_a_bounded_number_of_times",),
    ),
    Mutation(
        name="the act comes before its intent",
        file="engine.py",
        before="        if records or intents:\n            await self._append(*records, *intents)\n",
        after=(
            "        for start in starts:\n"
            "            self._state = fold(self._state, [Recorded(sequence=self._state.sequence + 1,"
            " at_ms=0, event=self._intent(start))])\n"
            "        await self._launch([start.attempt for start in starts])\n"
            "        if records or intents:\n            await self._append(*records, *intents)\n"
        ),
        caught_by=(f"{CRASHES}::test_killed_at_any_boundary_of_the_journal_it_ends_with_the_same_evidence",),
    ),
    Mutation(
        name="an attempt that was launched is launched again after a crash under another name",
        file="core/decide.py",
        before="        yield StartAgain(attempt=attempt.id)\n",
        after=(
            "        yield Start(attempt=replace(attempt.id, number=attempt.id.number + 1),"
            " action=attempt.action, scheduled=attempt.scheduled)\n"
        ),
        caught_by=(f"{CRASHES}::test_killed_at_any_boundary_of_the_journal_it_ends_with_the_same_evidence",),
    ),
    Mutation(
        name="the nonce is not looked at",
        file="core/contract.py",
        before='    if line.get("attempt") != attempt or line.get("nonce") != nonce:\n',
        after='    if line.get("attempt") != attempt:\n',
        caught_by=(f"{CONTRACT}::test_rubbish_is_a_fault_that_names_the_line",),
    ),
    Mutation(
        name="rubbish in a log is passed over",
        file="core/contract.py",
        before="            return replace(reading, fault=",
        after="            continue\n            return replace(reading, fault=",
        caught_by=(f"{CONTRACT}::test_rubbish_is_a_fault_that_names_the_line",),
    ),
    Mutation(
        name="a judge that raises passes",
        file="core/judge.py",
        before='        return _judgement(evidence, [_inconclusive(Cause.JUDGE, f"the judge raised',
        after=(
            "        return _judgement(evidence, [Finding(verdict=Verdict.EXACTLY_ONCE, reason='')])\n"
            '        return _judgement(evidence, [_inconclusive(Cause.JUDGE, f"the judge raised'
        ),
        caught_by=(f"{JUDGE}::test_a_judge_that_raises_is_inconclusive",),
    ),
    Mutation(
        name="no finding is a pass",
        file="core/judge.py",
        before="    if not findings and _exactly_once(evidence):\n",
        after="    if not findings or evidence.ledger is None:\n",
        caught_by=(
            f"{JUDGE}::test_taking_the_ledger_away_never_makes_a_pass",
            f"{JUDGE}::test_it_never_passes_in_vain",
        ),
    ),
    Mutation(
        name="inconclusive cells pass",
        file="core/summarize.py",
        before="any(cell.met is None for cell in cells) or _idle_rules(run):\n",
        after="_idle_rules(run):\n",
        caught_by=(f"{ENGINE}::test_a_kill_that_is_not_proven_is_inconclusive",),
    ),
    Mutation(
        name="a rule that is about no cell is forgotten",
        file="core/summarize.py",
        before=" or _idle_rules(run):\n",
        after=":\n",
        caught_by=(f"{ENGINE}::test_a_rule_about_a_point_that_no_control_passed_is_not_forgotten",),
    ),
    Mutation(
        name="a take that was not read in time is never read",
        file="engine.py",
        before="                if read.view is None or view.effects != read.view.effects:\n",
        after="                if read.view is not None and view.effects != read.view.effects:\n",
        caught_by=(f"{QUIET}::test_harm_in_a_take_that_was_not_read_in_time_is_found_before_the_end",),
    ),
    Mutation(
        name="any failure is set apart as the framework's own",
        file="core/expectations.py",
        before="    return words if rule.match in words else None\n",
        after="    return words\n",
        caught_by=(f"{ENGINE}::test_another_error_than_the_named_one_is_not_set_apart",),
    ),
    Mutation(
        name="set apart has no bound",
        file="core/summarize.py",
        before="    if expected.framework_errors is not None and apart > expected.framework_errors.most:\n",
        after="    if expected.framework_errors is not None and apart > 99:\n",
        caught_by=(f"{ENGINE}::test_the_frameworks_own_error_is_set_apart_and_bounded",),
    ),
    Mutation(
        name="killed cells don't wait for their control",
        file="core/decide.py",
        before="            if not allowed[control]:\n                continue\n",
        after="",
        caught_by=(f"{ENGINE}::test_nothing_is_killed_where_no_control_came_to_a_conclusion",),
    ),
    Mutation(
        name="attempts may hang for ever",
        file="core/decide.py",
        before="    if age_seconds > limits.attempt_seconds:\n",
        after="    if age_seconds > limits.attempt_seconds * 1_000_000:\n",
        caught_by=(f"{ENGINE}::test_a_hanging_resume_is_ended_at_its_deadline_and_the_trial_says_so",),
    ),
    Mutation(
        name="a frozen attempt is never let go on",
        file="core/decide.py",
        before="    yield from (Release(attempt=attempt.id) for attempt in frozen)\n    if not frozen:\n",
        after="    if True:\n",
        caught_by=(f"{METHODS}::test_a_frozen_attempt_goes_on_after_another_took_over",),
    ),
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_suite_catches(mutation: Mutation, tmp_path: Path) -> None:
    copy = tmp_path / "killpoint"
    shutil.copytree(ROOT / "operator" / "killpoint", copy, ignore=shutil.ignore_patterns("__pycache__"))
    source = (copy / mutation.file).read_text()
    assert source.count(mutation.before) == 1, f"{mutation.file} changed: mend the mutation, it must apply exactly once"
    (copy / mutation.file).write_text(source.replace(mutation.before, mutation.after))
    outcome = _run(mutation.caught_by, tmp_path)
    # 1: tests ran and some failed. Anything else (2: interrupted, 4: no such test, 5: none collected) caught nothing.
    assert outcome.returncode == 1, f"not caught: {mutation.name}\n{outcome.stdout[-3000:]}{outcome.stderr[-2000:]}"
    assert "failed" in outcome.stdout


def _run(tests: tuple[str, ...], sources: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{sources}:{ROOT}", "CI": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_the_copy_is_what_the_tests_run_against(tmp_path: Path) -> None:
    """Otherwise every mutation would be tried on the real sources, and none could be caught."""
    copy = tmp_path / "killpoint"
    shutil.copytree(ROOT / "operator" / "killpoint", copy, ignore=shutil.ignore_patterns("__pycache__"))
    found = subprocess.run(
        [sys.executable, "-c", "import killpoint; print(killpoint.__file__)"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(found.stdout.strip()) == copy / "__init__.py"

"""``axformer watch``: follow a job of the service, with the display of ``axformer prune``."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import typer
from rich.console import Console

from axformer.cli.deploying import NOTHING, Required, exit_if_missed, exit_if_unmet, show_result
from axformer.cli.display import display_for
from axformer.cli.failing import failing
from axformer.cli.options import RequireOption
from axformer.cli.remote import JobArgument, JsonOption, notes, output, service_for
from axformer.cli.words import failure
from axformer.client import Client, Job, ServiceError, Update
from axformer.methods.progress import Progress
from axformer.plan.trial import Trial
from axformer.wire.states import TERMINAL

EXIT_INTERRUPTED = 130
"""Exit code of shells for Ctrl-C."""


def watch(job: JobArgument, as_json: JsonOption = False, require: RequireOption = None) -> None:
    """Follow a job to its end; exit code 0 only if it succeeds. Ctrl-C leaves the job running.

    With --json each trial is a line {"trial": ...}, and each new state of the job a line {"job": ...}.
    """
    with failing():
        required = Required.parse(require)
    with service_for(job) as (client, job):
        follow(client, job, as_json=as_json, required=required)


def follow(client: Client, job_id: str, *, as_json: bool, required: Required = NOTHING) -> None:
    """Show a job until it has ended.

    Raises:
        ServiceError: it has not succeeded.
        Exit: someone pressed Ctrl-C, or the result is not what was asked for or required.
    """
    try:
        if as_json:
            job = _check(_lines(client.follow(job_id, lost=_lost(notes()))))
        else:
            job = show_job(output(), client, job_id)
            show_result(output(), job)
            output().print(f"Its files: axformer download {job.id}", soft_wrap=True)
        if job.report is not None:
            report = job.report.model_dump()
            exit_if_unmet(report, required)
            exit_if_missed(report, () if job.posted is None else job.posted.get("forms") or ())
    except KeyboardInterrupt:
        notes().print(f"\nNo longer watching; the job goes on. Look at it again with: axformer watch {job_id}")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def show_job(console: Console, client: Client, job_id: str) -> Job:
    """Show a job in the live display until it has ended.

    Raises:
        ServiceError: it has not succeeded.
    """
    return _check(_shown(console, client.follow(job_id, lost=_lost(console))))


def _check(job: Job) -> Job:
    if not job.has_succeeded:
        raise ServiceError(failure(job))
    return job


def _lost(console: Console) -> Callable[[ServiceError], None]:
    """Reports once per outage that the service does not answer."""
    says = _Says(console)
    return lambda error: says(f"{error.message} (trying again)")


def _lines(updates: Iterator[Update]) -> Job:
    known = None
    for update in updates:
        for trial in update.trials:
            _line("trial", trial.model_dump(mode="json"))
        if update.job.state != known or update.job.has_ended:
            known = update.job.state
            _line("job", update.job.model_dump(mode="json"))
    return update.job


def _line(kind: str, content: Any) -> None:
    sys.stdout.write(json.dumps({kind: content}) + "\n")
    sys.stdout.flush()


def _shown(console: Console, updates: Iterator[Update]) -> Job:
    meter, says = _Meter(), _Says(console)
    with display_for(console, meter) as display:
        for update in updates:
            meter.job = update.job
            is_over = update.job.state in _AFTER_TRIALS  # then the trials were made before it reached this state
            if not is_over:
                says(_standing(update.job))
            for trial in update.trials:
                display.show(trial)
            if not update.job.has_ended and update.job.progress is not None and update.job.progress.step is not None:
                display.tell(update.job.progress.step)
            if is_over:
                says(_standing(update.job))
        if meter.has_trials:
            display.end()
    return update.job


class _Says:
    """Prints what is new."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said = ""

    def __call__(self, words: str) -> None:
        if self._said != words:
            self._said = words
            self._console.print(words, style="dim", markup=False, soft_wrap=True)


class _Meter:
    """The progress of the job as the service reports it."""

    job: Job
    has_trials = False

    def __call__(self, trials: Sequence[Trial], ended: bool) -> Progress:
        self.has_trials = True
        progress = self.job.progress
        if progress is None:
            return Progress(done=len(trials), known=len(trials), seconds=trials[-1].seconds, seconds_left=None)
        left = None if ended or self.job.has_ended else progress.seconds_left
        done = len(trials)
        return Progress(done=done, known=max(done, progress.known), seconds=progress.seconds, seconds_left=left)


def _standing(job: Job) -> str:
    """The state of a job in one line that changes when something happens."""
    words = f"{job.id} is {job.state}" if not job.has_ended else f"{job.id} has {_ENDED.get(job.state, job.state)}"
    if job.queue is not None and job.queue.position is not None:
        words += f" at place {job.queue.position}"
    if job.status_reason and not job.error:
        words += f": {job.status_reason}"
    if job.attempt > 1:
        words += f" (attempt {job.attempt} of {job.max_attempts})"
    return words


_ENDED = {"cancelled": "been cancelled"}
_AFTER_TRIALS = TERMINAL | {"packaging"}
"""States after the last trial of a job."""

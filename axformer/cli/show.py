"""``axformer show``: one job."""

from collections.abc import Callable, Iterator
from functools import partial

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from axformer.cli.deploying import show_result
from axformer.cli.display import duration
from axformer.cli.remote import JobArgument, JsonOption, output, print_json, service_for
from axformer.cli.words import age, change_of_loss, knobs, outcome, place, state
from axformer.client import Client, Job
from axformer.client.answers import JobReport
from axformer.client.errors import NotFoundError
from axformer.config import changed_knobs
from axformer.wire.handovers import HandoverRead
from axformer.wire.heads import NewHead


def show(job: JobArgument, as_json: JsonOption = False) -> None:
    """Show a job: its inputs, its state and its result."""
    with service_for(job) as (client, job):
        shown = client.job(job)
        facts = [] if as_json else list(_facts(shown, partial(_named, client)))
    if as_json:
        print_json(shown)
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, value)
    output().print(table)
    show_result(output(), shown)


def _named(client: Client, uri: str) -> str:
    """A reference; of an upload with the name of its file, as long as it is kept."""
    if not uri.startswith("upload:"):
        return uri
    try:
        return f"{client.uploaded(uri).filename} ({uri})"
    except NotFoundError:
        return f"{uri} (deleted)"


def _facts(job: Job, named: Callable[[str], str]) -> Iterator[tuple[str, RenderableType]]:
    yield "job", job.id
    yield "name", job.name
    yield "kind", job.kind
    yield "state", _state(job)
    if job.error is not None:
        yield "error", f"{job.error.message} ({job.error.code})"
    if job.queue is not None and job.queue.position is not None:
        yield "queue", place(job.queue)
    if job.progress is not None and job.progress.first_look is not None:
        yield "data", job.progress.first_look
    if job.progress is not None:
        yield from _progress(job)
    if job.report is not None:
        yield "result", _result(job.report)
    if job.deliver is not None:
        yield "goes to", _going(job.deliver)
    yield from _asked(job, named)
    if job.labels:
        yield "labels", ", ".join(f"{key}={value}" for key, value in job.labels.items())
    if job.webhook is not None:
        yield "webhook", job.webhook.url
    yield "posted", f"{age(job.created_at)} ago"
    if job.started_at is not None and job.finished_at is not None:
        yield "took", duration((job.finished_at - job.started_at).total_seconds())


def _asked(job: Job, named: Callable[[str], str]) -> Iterator[tuple[str, RenderableType]]:
    """The inputs, and what is to be done with them."""
    for name, source in job.sources.items():
        yield name, named(source["uri"])
    if job.analysis is not None:
        yield "reports", ", ".join(job.analysis.reports or ["all that the inputs allow"])
        return
    if job.goal is None:
        yield "knobs", knobs(job.preset, changed_knobs(job.preset, job.config))
    else:
        yield "goal", knobs(job.goal, job.posted.get("config", {}))
    if job.finetune is not None:
        yield "finetune", ", ".join(f"{name}={value}" for name, value in job.finetune.items() if value is not None)
    if job.head is not None:
        yield "head", str(NewHead.model_validate(job.head))
    yield "forms", ", ".join(job.forms)


def _progress(job: Job) -> Iterator[tuple[str, RenderableType]]:
    assert job.progress is not None
    if job.analysis is None:
        yield "pass", _pass(job)
    elif job.progress.step is not None:
        yield "now", job.progress.step.sentence


def _going(handover: HandoverRead) -> str:
    why = "" if handover.error is None else f", {handover.error.message} ({handover.error.code})"
    return f"{handover.uri}: {handover.state}{why}"


def _state(job: Job) -> Text:
    words = state(job.state, job.outcome)
    if job.status_reason and job.error is None:
        words.append(f": {job.status_reason}", "default")
    if job.attempt > 1:
        words.append(f" (attempt {job.attempt} of {job.max_attempts})", "default")
    return words


def _result(report: JobReport) -> str:
    figures = outcome(report)
    words = f"{figures.data} {figures.words} {figures.before:.4f} → {figures.after:.4f} ({figures.after - figures.before:+.4f})"
    if report.estimated_speedup is not None:
        words += f", {report.estimated_speedup:.2f} times fewer operations"
    return words


def _pass(job: Job) -> str:
    """The progress of the pass; with a report, the pass may have continued beyond the model that was kept."""
    progress = job.progress
    assert progress is not None
    if job.report is not None:
        return f"{progress.done} trials"
    words = f"{progress.done} of {progress.known} trials, loss {change_of_loss(progress)}"
    if progress.estimated_speedup is not None:
        words += f", {progress.estimated_speedup:.2f} times fewer operations"
    if progress.seconds_left and not job.has_ended:
        words += f", about {duration(progress.seconds_left)} left"
    return words

"""``axformer cancel``, ``pause``, ``resume``, ``retry``: control a job, or a group of jobs."""

from typing import Annotated

import typer

from axformer.cli.remote import JobArgument, JsonOption, notes, output, print_json, service
from axformer.cli.words import standing
from axformer.client import Group, Job

_GROUP_PREFIX = "grp_"
JobOrGroupArgument = Annotated[str, typer.Argument(help="Id of a job, or of a group of jobs.", metavar="JOB")]


def cancel(job: JobOrGroupArgument, as_json: JsonOption = False) -> None:
    """Cancel a job: a queued one at once, a running one at its next trial. For a group: all jobs that have not ended."""
    with service() as client:
        _tell(client.cancel_group(job) if _is_group(job) else client.cancel(job), as_json=as_json)


def pause(job: JobArgument, as_json: JsonOption = False) -> None:
    """Pause a job at its next trial; it keeps its trace."""
    with service() as client:
        _tell(client.pause(job), as_json=as_json)


def resume(job: JobArgument, as_json: JsonOption = False) -> None:
    """Resume a paused job where its trace ends."""
    with service() as client:
        _tell(client.resume(job), as_json=as_json)


def retry(job: JobOrGroupArgument, as_json: JsonOption = False) -> None:
    """Run a failed or cancelled job again from the start. For a group: all failed or cancelled jobs."""
    with service() as client:
        if _is_group(job):
            _tell(client.retry_group(job), as_json=as_json)
            return
        error = client.job(job).error
        _tell(client.retry(job), as_json=as_json)
    if error is not None and not error.retryable:
        notes().print(f"note: it failed by what it was given ({error.message}); unless that changes it fails alike")


def _is_group(text: str) -> bool:
    return text.startswith(_GROUP_PREFIX)


def _tell(changed: Job | Group, *, as_json: bool) -> None:
    if as_json:
        print_json(changed)
    elif isinstance(changed, Job):
        output().print(f"{changed.id} is {changed.state}", soft_wrap=True)
    else:
        output().print(f"{changed.id}: {standing(changed)}", soft_wrap=True)

"""``axformer cancel``, ``pause``, ``resume``, ``retry``: control a job."""

from axformer.cli.remote import JobArgument, JsonOption, notes, output, print_json, service
from axformer.client import Job


def cancel(job: JobArgument, as_json: JsonOption = False) -> None:
    """Cancel a job: a queued one at once, a running one at its next trial."""
    with service() as client:
        _tell(client.cancel(job), as_json=as_json)


def pause(job: JobArgument, as_json: JsonOption = False) -> None:
    """Pause a job at its next trial; it keeps its trace."""
    with service() as client:
        _tell(client.pause(job), as_json=as_json)


def resume(job: JobArgument, as_json: JsonOption = False) -> None:
    """Resume a paused job where its trace ends."""
    with service() as client:
        _tell(client.resume(job), as_json=as_json)


def retry(job: JobArgument, as_json: JsonOption = False) -> None:
    """Run a failed or cancelled job again from the start."""
    with service() as client:
        error = client.job(job).error
        _tell(client.retry(job), as_json=as_json)
    if error is not None and not error.retryable:
        notes().print(f"note: it failed by what it was given ({error.message}); unless that changes it fails alike")


def _tell(changed: Job, *, as_json: bool) -> None:
    if as_json:
        print_json(changed)
    else:
        output().print(f"{changed.id} is {changed.state}", soft_wrap=True)

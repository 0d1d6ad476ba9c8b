"""``axformer cancel``, ``pause``, ``resume``, ``retry``: what may be done with a job on its way."""

from axformer.cli.remote import JobArgument, JsonOption, output, print_json, service
from axformer.client import Job


def cancel(job: JobArgument, as_json: JsonOption = False) -> None:
    """Cancel a job: a queued one at once, a running one at its next trial."""
    with service() as client:
        _tell(client.cancel(job), as_json=as_json)


def pause(job: JobArgument, as_json: JsonOption = False) -> None:
    """Take a job off its worker at its next trial; it keeps its trace."""
    with service() as client:
        _tell(client.pause(job), as_json=as_json)


def resume(job: JobArgument, as_json: JsonOption = False) -> None:
    """Queue a paused job again; it goes on where its trace ends."""
    with service() as client:
        _tell(client.resume(job), as_json=as_json)


def retry(job: JobArgument, as_json: JsonOption = False) -> None:
    """Queue a failed or cancelled job afresh."""
    with service() as client:
        _tell(client.retry(job), as_json=as_json)


def _tell(job: Job, *, as_json: bool) -> None:
    if as_json:
        print_json(job)
    else:
        output().print(f"{job.id} is {job.state}", soft_wrap=True)

"""``axformer submit``, ``submit-analysis`` and ``upload``: run on the service what ``prune`` and ``analyze`` run locally."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError

from axformer.cli import analyze, options
from axformer.cli.inputs import ColumnsOption, MaxLengthOption, columns_of
from axformer.cli.remote import HubTokenOption, JsonOption, bar, hub_token_of, notes, output, print_json, service
from axformer.cli.steer import DeliverOption, deliver_token
from axformer.cli.watch import follow
from axformer.cli.words import place
from axformer.client import Client, Job, Upload
from axformer.client.packing import sendable
from axformer.errors import ConfigError, DataError
from axformer.intake.references import hub_example
from axformer.wire.references import tidy

NameOption = Annotated[str | None, typer.Option(help="A name for people; by default the checkpoint's own name.")]
DeviceWantedOption = Annotated[str, typer.Option(help="The device that the worker must have: any, cpu or gpu.")]
MemoryWantedOption = Annotated[
    str | None,
    typer.Option(help="Memory that its device must have, as in 40GB; without it, a look at the files finds out."),
]
PriorityOption = Annotated[int, typer.Option(help="Higher runs sooner, among your team's jobs.")]
_SIZE = TypeAdapter(ByteSize)
WatchOption = Annotated[bool, typer.Option("--watch", help="Follow the job to its end.")]


@options.takes_run
def submit(
    asked: options.RunOptions,
    name: NameOption = None,
    device: DeviceWantedOption = "any",
    device_memory: MemoryWantedOption = None,
    priority: PriorityOption = 0,
    label: options.LabelOption = None,
    webhook: Annotated[str | None, typer.Option(help="An https:// address that receives the job's events.")] = None,
    webhook_event: options.WebhookEventOption = None,
    deliver: DeliverOption = None,
    hub_token: HubTokenOption = False,
    watch: WatchOption = False,
    as_json: JsonOption = False,
) -> None:
    """Queue a job for a checkpoint and its data, and print its id. Local files are uploaded first."""
    with service() as client:
        run = asked.run()
        run.settled()  # errors are reported before anything is sent
        sources = {part: source.uri for part, source in run.sources().items()}
        labels, memory = options.labels_of(label), _bytes(device_memory)
        reference = _referring(client)
        job = client.submit(
            name or _name_of(run.checkpoint.uri),
            **run.given() | {part: reference(uri) for part, uri in sources.items()},
            columns=columns_of(asked.columns).model_dump(exclude_defaults=True),
            priority=priority,
            device=device,
            device_memory=memory,
            labels=labels,
            webhook=_webhook(webhook, webhook_event),
            deliver=None if deliver is None else {"uri": deliver, "token": deliver_token()},
            hub_token=hub_token_of(hub_token, tuple(sources.values())),
        )
        _tell(client, job, as_json=as_json, watched=watch)


def submit_analysis(
    checkpoint: options.CheckpointArgument,
    data: analyze.AnalyzedDataOption,
    train: analyze.ProbeRowsOption = None,
    against: analyze.AgainstOption = None,
    report: analyze.ReportOption = None,
    rows: analyze.RowsOption = None,
    max_length: MaxLengthOption = None,
    columns: ColumnsOption = None,
    name: NameOption = None,
    device: DeviceWantedOption = "any",
    device_memory: MemoryWantedOption = None,
    priority: PriorityOption = 0,
    label: options.LabelOption = None,
    hub_token: HubTokenOption = False,
    watch: WatchOption = False,
    as_json: JsonOption = False,
) -> None:
    """Queue an analysis of a model, and print its id. Local files are uploaded first."""
    with service() as client:
        renamed, labels = columns_of(columns).model_dump(exclude_defaults=True), options.labels_of(label)
        memory = _bytes(device_memory)
        reference = _referring(client)
        job = client.submit_analysis(
            name or _name_of(checkpoint),
            checkpoint=reference(checkpoint),
            validation=reference(data),
            train=None if train is None else reference(train),
            against=None if against is None else reference(against),
            columns=renamed,
            reports=analyze.reports_of(report),
            rows=rows,
            max_length=max_length,
            priority=priority,
            device=device,
            device_memory=memory,
            labels=labels,
            hub_token=hub_token_of(hub_token, (checkpoint, data, train, against)),
        )
        _tell(client, job, as_json=as_json, watched=watch)


def _bytes(text: str | None) -> int | None:
    try:
        return None if text is None else int(_SIZE.validate_python(text))
    except ValidationError:
        raise ConfigError(
            f"--device-memory={text} is no size; give bytes, or a number with a unit as in 40GB"
        ) from None


def _webhook(url: str | None, events: list[str] | None) -> dict[str, Any] | None:
    if url is None:
        if events:
            raise ConfigError("--webhook-event says of what, and --webhook whom to tell; give --webhook too")
        return None
    return {"url": url} | ({"events": events} if events else {})


def _tell(client: Client, job: Job, *, as_json: bool, watched: bool) -> None:
    """Print the id of a new job and where to look at it, and follow it where that was asked for."""
    if not as_json:
        output().print(job.id, soft_wrap=True)
        notes().print(f"Its page: {client.page_of(job.id)}")
    elif not watched:
        print_json(job)
    if watched:
        follow(client, job.id, as_json=as_json)
    elif notes().is_terminal and not as_json:
        where = client.job(job.id).queue
        notes().print(f"It is queued{f' {place(where)}' if where else ''}. Follow it with: axformer watch {job.id}")


def _referring(client: Client) -> Callable[[str], str | Upload]:
    """A function that turns an option into a reference, uploading each path once."""

    @cache
    def reference(text: str) -> str | Upload:
        if "://" in text or text.startswith("upload:"):
            return tidy(text)
        path = Path(text)
        if not path.exists():
            raise DataError(f"'{text}' does not exist here; give a path, or a reference such as {hub_example(text)}")
        return _sent(client, path)

    return reference


def _name_of(checkpoint: str) -> str:
    """The checkpoint's own name: the last part of its path or reference, without a query, which may hold a signature."""
    bare = re.split(r"[?#]", checkpoint, maxsplit=1)[0] if "://" in checkpoint else checkpoint
    return sendable(bare.rstrip("/").rpartition("/")[2] or bare)


def upload(
    path: Annotated[Path, typer.Argument(help="A data file, an archive, or the directory of a checkpoint.")],
    as_json: JsonOption = False,
) -> None:
    """Upload a file or a checkpoint's directory, and print its reference for jobs."""
    with service() as client:
        stored = _sent(client, path)
    if as_json:
        print_json(stored)
    else:
        output().print(stored.uri, soft_wrap=True)


def _sent(client: Client, path: Path) -> Upload:
    """Send a file or a directory, with a progress bar on terminals."""
    size = sum(one.stat().st_size for one in path.iterdir() if one.is_file()) if path.is_dir() else _size(path)
    with bar(notes(), f"Sending {path.name or path}", size) as on_progress:
        return client.upload(path, on_progress)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0

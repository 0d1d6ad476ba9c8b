"""``axformer submit-analysis``: run on the service what ``axformer analyze`` runs locally."""

from axformer.cli import options
from axformer.cli.analyze import (
    AgainstOption,
    AnalyzedDataOption,
    MaxLengthOption,
    ProbeRowsOption,
    ReportOption,
    RowsOption,
    reports_of,
)
from axformer.cli.hub_token import HubTokenOption, hub_token_of
from axformer.cli.remote import JsonOption, service
from axformer.cli.submit import DeviceWantedOption, NameOption, PriorityOption, WatchOption, name_of, referring, tell
from axformer.cli.watch import follow


def submit_analysis(
    checkpoint: options.CheckpointArgument,
    data: AnalyzedDataOption,
    train: ProbeRowsOption = None,
    against: AgainstOption = None,
    report: ReportOption = None,
    rows: RowsOption = None,
    max_length: MaxLengthOption = None,
    columns: options.ColumnsOption = None,
    name: NameOption = None,
    device: DeviceWantedOption = "any",
    priority: PriorityOption = 0,
    label: options.LabelOption = None,
    hub_token: HubTokenOption = False,
    watch: WatchOption = False,
    as_json: JsonOption = False,
) -> None:
    """Queue an analysis of a model, and print its id. Local files are uploaded first."""
    with service() as client:
        renamed, labels = options.columns_of(columns).model_dump(exclude_defaults=True), options.labels_of(label)
        reference = referring(client)
        job = client.submit_analysis(
            name or name_of(checkpoint),
            checkpoint=reference(checkpoint),
            validation=reference(data),
            train=None if train is None else reference(train),
            against=None if against is None else reference(against),
            columns=renamed,
            reports=reports_of(report),
            rows=rows,
            max_length=max_length,
            priority=priority,
            device=device,
            labels=labels,
            hub_token=hub_token_of(hub_token, (checkpoint, data, train, against)),
        )
        tell(client, job, as_json=as_json, watched=watch)
        if watch:
            follow(client, job.id, as_json=as_json)

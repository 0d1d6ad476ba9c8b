"""``axformer analyze``: say where a model is redundant, without changing it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from axformer.cli import options
from axformer.cli.characters import Terminal
from axformer.cli.failing import failing
from axformer.cli.inputs import ColumnsOption, DeviceOption, MaxLengthOption, columns_of
from axformer.cli.libraries import ready, without_collection

if TYPE_CHECKING:
    from axformer.wire.analysis import Analysis

REPORT_HELP = (
    "Reports, comma-separated: layers, heads, cka, clusters, drift, features; all that the inputs allow by default."
)
RowsOption = Annotated[
    int | None, typer.Option(help="Most rows of each data set, drawn at random; 2000 by default.", metavar="N")
]
AnalyzedDataOption = Annotated[str, typer.Option(help="Labelled rows to measure on, as for prune.")]
ProbeRowsOption = Annotated[
    str | None,
    typer.Option(help="Other labelled rows, which linear probes learn from; without them there are no probes."),
]
AgainstOption = Annotated[
    str | None, typer.Option(help="The model that the checkpoint was trained from, for the report drift.")
]
ReportOption = Annotated[str | None, typer.Option(help=REPORT_HELP)]


def analyze(
    checkpoint: options.CheckpointArgument,
    data: AnalyzedDataOption,
    output: Annotated[Path, typer.Option(help="Directory for the analysis; it must not exist, or be empty.")],
    train: ProbeRowsOption = None,
    against: AgainstOption = None,
    report: ReportOption = None,
    rows: RowsOption = None,
    max_length: MaxLengthOption = None,
    columns: ColumnsOption = None,
    device: DeviceOption = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print analysis.json; progress goes to standard error.")
    ] = False,
) -> None:
    """Say where a model is redundant: layers, heads, dimensions. The model stays as it is."""
    with failing():
        names = reports_of(report)
        read = columns_of(columns)
        console = Terminal(stderr=as_json)
        with without_collection():
            from axformer.analysis.advice import Given
            from axformer.analysis.inputs import WantedReports
            from axformer.analyzing import carry_out, open_analysis, write_analysis
            from axformer.cli.display import showing
            from axformer.data.columns import DataSource

        wanted = WantedReports(names, rows)
        wanted.check()
        computing = ready(device, output)
        given = Given(checkpoint, data, train, columns, max_length)
        with showing(console, "Loading the checkpoint and the data") as around:
            more = None if train is None else DataSource(train, read)
            inputs = open_analysis(given, DataSource(data, read), more, against, computing)
            analysis = carry_out(inputs, wanted, around)
        write_analysis(analysis, output)
    if as_json:
        print(json.dumps(analysis.model_dump(mode="json"), indent=1))  # noqa: T201 - this is what was asked for
    else:
        _tell(console, analysis, output)


def reports_of(text: str | None) -> list[str] | None:
    """The comma-separated names of reports; None for all."""
    return None if text is None else [name.strip() for name in text.split(",")]


def _tell(console: Console, analysis: "Analysis", output: Path) -> None:
    for note in analysis.notes:
        console.print(f"note: {note}", soft_wrap=True)
    for name in type(analysis.reports).model_fields:
        report = getattr(analysis.reports, name)
        if report is not None:
            console.print(Text.assemble((name, "bold"), f": {report.advice.sentence}"), soft_wrap=True)
            if report.advice.command:
                console.print(f"  {report.advice.command}", soft_wrap=True)
    ranking = "" if analysis.reports.heads is None else ", ranking.jsonl"
    console.print(f"Wrote {output}/ (analysis.json, analysis.html{ranking})", soft_wrap=True)

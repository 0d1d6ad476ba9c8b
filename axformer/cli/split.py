"""``axformer split``: one file into rows to train on and rows to validate with."""

import json
from pathlib import Path
from typing import Annotated

import typer

from axformer.cli.characters import Terminal
from axformer.cli.failing import failing
from axformer.cli.inputs import ColumnsOption, columns_of
from axformer.errors import InputError


def split(
    data: Annotated[str, typer.Argument(help="The rows: a file, a URL or a data set of a hub.")],
    output: Annotated[Path, typer.Option(help="Directory for train.jsonl and validation.jsonl, which must not exist.")],
    share: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Of the rows of every class, those to validate with.")
    ] = 0.15,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw.")] = 0,
    columns: ColumnsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the files and their rows as JSON.")] = False,
) -> None:
    """Cut rows into some to train on and some to validate with, the same share of every class."""
    with failing():
        files = [output / f"{part}.jsonl" for part in ("train", "validation")]
        for file in files:
            if file.exists():
                raise InputError(f"output '{file}' exists; choose another directory or remove it")
        from axformer.data.reading import read_rows
        from axformer.intake.splitting import split as cut

        parts = cut(read_rows(data, columns_of(columns)), share, seed)
        output.mkdir(parents=True, exist_ok=True)
        for file, rows in zip(files, parts, strict=True):
            records = (dict(zip(rows.table, values, strict=True)) for values in zip(*rows.table.values(), strict=True))
            lines = (json.dumps(record, ensure_ascii=False, default=str) + "\n" for record in records)
            file.write_text("".join(lines), encoding="utf-8")
    train, validation = map(len, parts)
    if as_json:
        typer.echo(json.dumps({str(file): len(rows) for file, rows in zip(files, parts, strict=True)}))
        return
    Terminal().print(f"{train:,} rows to train on and {validation:,} to validate with in {output}")

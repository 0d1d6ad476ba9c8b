"""``axformer trim``: a checkpoint with a smaller vocabulary."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from axformer.cli.characters import Terminal
from axformer.cli.failing import failing
from axformer.cli.inputs import ColumnsOption, columns_of
from axformer.cli.libraries import ready
from axformer.data.columns import DataSource

if TYPE_CHECKING:
    from axformer.trimming import Trimmed


def trim(
    checkpoint: Annotated[str, typer.Argument(help="Directory of a fine-tuned model, or hf://organisation/name.")],
    output: Annotated[Path, typer.Option(help="Directory for the smaller checkpoint, which must not exist.")],
    scripts: Annotated[
        str,
        typer.Option(help="Scripts whose texts are answered exactly as before, as Unicode calls them: Latin,Greek."),
    ] = "",
    data: Annotated[
        str | None, typer.Option(help="Texts of the kind that the model sees: only their tokens stay, without labels.")
    ] = None,
    columns: ColumnsOption = None,
    tokens: Annotated[
        int, typer.Option(min=0, help="With --data, keep about so many at least: the most common ones too.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Write a checkpoint without the tokens that texts of some scripts, or given texts, never have."""
    with failing():
        ready("cpu")
        from axformer.trimming import trim as made_smaller

        names = [name.strip() for name in scripts.split(",") if name.strip()]
        source = None if data is None else DataSource(data, columns_of(columns))
        with Terminal(stderr=True).status("Choosing tokens, and comparing answers"):
            trimmed = made_smaller(checkpoint, output, names, source, tokens)
    if as_json:
        print(json.dumps(asdict(trimmed), indent=1))  # noqa: T201 - this is what was asked for
        return
    Terminal().print(*_told(trimmed, checkpoint, output, names), sep="\n", soft_wrap=True)


def _told(trimmed: "Trimmed", checkpoint: str, output: Path, scripts: list[str]) -> list[str]:
    """What stayed, which texts are answered as before, and how to test the others."""
    size = (
        f"{trimmed.tokens:,} of {trimmed.tokens_before:,} tokens stay: {trimmed.bytes / 1e6:.1f} MB of "
        f"{trimmed.bytes_before / 1e6:.1f} in {output}"
    )
    if trimmed.unseen is None:
        return [size, f"Texts in {', '.join(scripts)} have the same tokens, and the same answers, as before."]
    read = (
        f"Each text of {trimmed.rows:,} has the same tokens as before. About {trimmed.unseen:.1%} of new ones have a token "
        "that went, and are read in smaller pieces."
    )
    if not trimmed.has_answers:
        return [size, f"{read} Compare both models on other rows before you serve it."]
    return [
        size,
        f"{read} Test what that costs on other rows:",
        f"  axformer answers {checkpoint} --data ROWS --output old.jsonl",
        f"  axformer answers {output} --data ROWS --output new.jsonl",
        "  axformer certify --answers old.jsonl new.jsonl --within-points 1",
    ]

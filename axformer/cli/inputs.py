"""Options that say how rows are read, and where is computed; without the methods that other options describe."""

from typing import Annotated

import typer

from axformer.data.columns import Columns
from axformer.errors import ConfigError

ColumnsOption = Annotated[
    str | None,
    typer.Option(
        help="Names of the columns, for example text=sentence,label=class; several make a list: choices=ending0+ending1."
    ),
]
MaxLengthOption = Annotated[int | None, typer.Option(help="Cut longer rows to this many tokens.", metavar="N")]
DeviceOption = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 ...; auto takes a GPU if there is one.")]


def columns_of(text: str | None) -> Columns:
    """Parse comma-separated ``ours=theirs`` pairs.

    Raises:
        ConfigError: it is not that, or names a column twice.
    """
    if text is None:
        return Columns()
    names: dict[str, str] = {}
    for part in text.split(","):
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        if not equals or ours not in Columns.model_fields or not theirs:
            known = ", ".join(Columns.model_fields)
            from axformer.config.nearest import suggestion  # imports every method's knobs

            near = suggestion(ours, Columns.model_fields) if equals and ours not in Columns.model_fields else ""
            raise ConfigError(f"--columns '{part}' is not name=column with a name of {known}{near and f'; {near}'}")
        if ours in names:
            raise ConfigError(
                f"--columns names two columns for {ours}, '{names[ours]}' and '{theirs}'; give one (the second of two texts is "
                "text_pair, and the columns of a list are joined by +)"
            )
        names[ours] = theirs
    return Columns(**names)

"""Options that several commands have, as text."""

from axformer.data.columns import Columns
from axformer.errors import ConfigError
from axformer.forms.kinds import KINDS


def columns_of(text: str | None) -> Columns:
    """``ours=theirs`` with commas between.

    Raises:
        ConfigError: it is not that.
    """
    if text is None:
        return Columns()
    names = {}
    for part in text.split(","):
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        if not equals or ours not in Columns.model_fields or not theirs:
            known = ", ".join(Columns.model_fields)
            raise ConfigError(f"--columns '{part}' is not name=column with a name of {known}")
        names[ours] = theirs
    return Columns(**names)


def forms_of(text: str) -> list[str]:
    """Names of forms with commas between.

    Raises:
        ConfigError: there is no such form.
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in KINDS:
            raise ConfigError(f"--forms '{name}' is no form; there are {', '.join(KINDS)}")
    return names

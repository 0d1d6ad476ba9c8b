"""Which suffixes of names say what a reference holds; which files a checkpoint has is for ``axformer.intake.names`` to say."""

from axformer.data.formats import ENDINGS, PACKED


def data_suffix(name: str) -> str | None:
    """The suffix that says how a data file is read, for example ``.jsonl`` or ``.csv.gz``; None if it is not known."""
    lower = name.lower()
    endings = (suffix + packed for suffix in ENDINGS for packed in ("", PACKED))
    return next((ending for ending in endings if lower.endswith(ending)), None)

"""The supported data files, by the suffixes of their names."""

from pathlib import PurePosixPath

JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
CSV_ENDING = ".csv"
TAB_ENDINGS = (".tsv", ".tab")
PARQUET_ENDINGS = (".parquet", ".pq", ".parq")
ARROW_ENDINGS = (*PARQUET_ENDINGS, ".arrow", ".feather")
"""Binary tables, whose parser runs in confined processes alone."""
CONLL_ENDINGS = (".conll", ".conllu", ".txt")
ENDINGS = (*JSON_ENDINGS, CSV_ENDING, *TAB_ENDINGS, *ARROW_ENDINGS, *CONLL_ENDINGS)
PACKED = ".gz"


def ending_of(path: str) -> str | None:
    """The suffix that determines how a file is read, in lower case and without ``.gz``; None if it is not supported.

    Args:
        path: a path, or a URL, whose query is ignored.
    """
    name = PurePosixPath(path.partition("?")[0].lower())
    ending = name.with_suffix("").suffix if name.suffix == PACKED else name.suffix
    return ending if ending in ENDINGS else None


def is_packed(path: str) -> bool:
    """Whether a file is compressed with gzip, by its name."""
    return path.partition("?")[0].lower().endswith(PACKED)

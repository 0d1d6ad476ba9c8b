"""The supported data files, by the suffixes of their names and by their first bytes."""

from pathlib import PurePosixPath

JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
CSV_ENDING = ".csv"
TAB_ENDINGS = (".tsv", ".tab")
ARROW_ENDINGS = (".parquet", ".pq", ".parq", ".arrow", ".feather")
"""Binary tables, whose parser runs in confined processes alone."""
PARQUET = b"PAR1"
"""How Parquet begins, whatever it is called."""
CONLL_ENDINGS = (".conll", ".conllu", ".txt")
ENDINGS = (*JSON_ENDINGS, CSV_ENDING, *TAB_ENDINGS, *ARROW_ENDINGS, *CONLL_ENDINGS)
_GZIP_ENDING, _GZIP = ".gz", b"\x1f\x8b"
_HEAD = 1024
_UNPACK = "unpack it, or pack it with gzip"
_AS_CSV = 'save it as "CSV UTF-8"'
_PAGE = "is a page of HTML; check the address: it may ask to sign in, or show the file instead of giving it"
_FOREIGN: tuple[tuple[tuple[str, ...], bytes | None, str], ...] = (
    ((".bz2",), b"BZh", f"is packed with bzip2; {_UNPACK}"),
    ((".xz", ".lzma"), b"\xfd7zXZ\x00", f"is packed with xz; {_UNPACK}"),
    ((".zst", ".zstd"), b"\x28\xb5\x2f\xfd", f"is packed with Zstandard; {_UNPACK}"),
    ((".7z",), b"7z\xbc\xaf\x27\x1c", f"is packed with 7-Zip; {_UNPACK}"),
    ((".xls",), b"\xd0\xcf\x11\xe0", f"is a spreadsheet; {_AS_CSV}"),
    ((".xlsx", ".ods"), None, f"is a spreadsheet; {_AS_CSV}"),
    ((".pkl", ".pickle", ".npy", ".npz", ".pt"), None, "is not read; write the rows as JSON Lines, CSV or Parquet"),
    ((".zip",), b"PK\x03\x04", f"is a ZIP archive or a spreadsheet; give one file of the archive, or {_AS_CSV}"),
    ((".html", ".htm"), b"<!doctype", _PAGE),
    ((), b"<html", _PAGE),
    ((), PARQUET, "is a Parquet file under another name; let its name end in .parquet"),
    ((), b"version https://git-lfs", "is a pointer of git-lfs and not the file; bring the file with git lfs pull"),
)
"""Files that are not read: endings, first bytes where these tell them from others, and what is said of them."""


def name_in(address: str) -> str:
    """The name of a file: a path, or of an address what stands behind ``#``, else the address without its query."""
    if "://" not in address:
        return address
    before, _, given = address.rpartition("#")
    return given if before else address.partition("?")[0]


def data_suffix(address: str) -> str | None:
    """How a data file is read, by the end of its name, for example ``.jsonl`` or ``.csv.gz``; None if that is not known."""
    name = PurePosixPath(name_in(address).lower())
    packed = _GZIP_ENDING if name.suffix == _GZIP_ENDING else ""
    ending = (name.with_suffix("") if packed else name).suffix
    return ending + packed if ending in ENDINGS else None


def ending_of(address: str) -> str | None:
    """The suffix that determines how a file is read, in lower case and without ``.gz``; None if it is not supported.

    Args:
        address: a path or a URL.
    """
    suffix = data_suffix(address)
    return None if suffix is None else suffix.removesuffix(_GZIP_ENDING)


def is_packed(head: bytes) -> bool:
    """Whether a file is compressed with gzip, by its first bytes, since browsers and servers unpack files and keep the name."""
    return head.startswith(_GZIP)


def foreign_ending(address: str) -> str | None:
    """What is said of a file whose name tells a format that is not read, as the end of a sentence about it; None of others."""
    name = name_in(address).lower()
    return next((words for endings, _, words in _FOREIGN if name.endswith(endings)), None)


def why_not_data(address: str) -> str:
    """What is said of a file whose name tells no format, as the end of a sentence about it."""
    if words := foreign_ending(address):
        return words
    behind = ", or write the name behind the address: ...#dev.jsonl" if address.startswith("http") else ""
    return f"has no known ending; use one of {', '.join(ENDINGS)}, or one with {_GZIP_ENDING}{behind}"


def foreign(content: bytes, ending: str) -> str | None:
    """What is said of content that is not what its name promises, as the end of a sentence about it; None if it may be that.

    Args:
        content: its first bytes, or all.
        ending: as :func:`ending_of` has it.
    """
    head = content[:_HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
    for _, sign, words in _FOREIGN:
        if sign is not None and (content.startswith(sign) or head.lower().startswith(sign)):
            return None if ending in ARROW_ENDINGS and sign == PARQUET else words
    return None

"""References as people write them: addresses of a browser, bare names, files of a checkpoint, names of other clouds."""

import re
from pathlib import Path

from axformer.data.formats import data_suffix, foreign_ending, why_not_data
from axformer.intake.names import is_checkpoint_file

_SCHEME = re.compile(r"[a-z][a-z0-9+.]+:", re.IGNORECASE)  # one letter is a drive
_SITE = re.compile(r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/", re.IGNORECASE)
_NO_OWNERS = "datasets|models|spaces|docs|papers|collections|blog|api|learn|organizations|settings"
_HUB = re.compile(
    rf"({_SITE.pattern}|hf:/*)(datasets/|models/)?(?!(?:{_NO_OWNERS})/)([^/@]+/[^/@]+)"
    r"(?:/(tree|blob|raw|resolve)/([^/]+))?(?:/+(.+?))?/*",
    re.IGNORECASE,
)
"""An address of the hub or of its site: the site, the kind, the repository, and of a page its kind and revision; the file."""
_CODE = re.compile(r"(https?://github\.com/[^/]+/[^/]+)/blob/", re.IGNORECASE)
_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_UPLOAD = re.compile(r"(?:upload:/*)?(upl_[0-9a-f]{1,32})", re.IGNORECASE)
_CLOUDS = ("gs", "gcs", "az", "abfs", "abfss", "wasb", "wasbs", "adl", "hdfs", "dbfs", "oss", "ftp", "sftp")
_SEND = "upload the file (axformer upload PATH)"


def what_to_write(reference: str, *, is_checkpoint: bool) -> str | None:
    """What to write instead, as the end of a sentence about a reference; None if it may be fetched, or nothing better is known.

    Args:
        reference: as :func:`axformer.wire.references.tidy` gives it.
        is_checkpoint: whether a checkpoint is meant; otherwise data.
    """
    bare = re.sub(r"//[^/@]*@", "//", re.split(r"[?#]", reference, maxsplit=1)[0])  # what may hold no secret
    scheme = bare.partition(":")[0]
    if upload := _UPLOAD.fullmatch(bare):
        right = f"upload:{upload[1].lower()}"
        return None if reference == right else f"is not written as uploads are; write {right}"
    if not _SCHEME.match(bare):
        return _of_path(bare, is_checkpoint=is_checkpoint)
    if other := _elsewhere(bare, scheme, is_checkpoint=is_checkpoint):
        return other
    if reference != bare and scheme in ("s3", "file", "hf"):
        return "holds ? or #, and nothing behind them is read; leave it out, or write %3F and %23 in a name"
    return _of_checkpoint(bare) if is_checkpoint else _of_data(reference, bare)


def _elsewhere(bare: str, scheme: str, *, is_checkpoint: bool) -> str | None:
    """What is said of an address that is right for another program."""
    if scheme in ("s3a", "s3n"):
        return f"has another name for the scheme; write s3{bare.removeprefix(scheme)}"
    if scheme in _CLOUDS:
        return f"lies where this service does not read; give a signed https:// address, or {_SEND}"
    if right := _on_hub(bare, is_checkpoint=is_checkpoint):
        return f"is not an address of {'a model' if is_checkpoint else 'a file'}; write {right}"
    page = _CODE.match(bare)
    return f"leads to a page about the file; write {page[1]}/raw/{bare[page.end() :]}" if page else None


def _of_checkpoint(bare: str) -> str | None:
    directory, _, name = bare.rpartition("/")
    if is_checkpoint_file(name) or name == "pytorch_model.bin":
        return f"is one file of a checkpoint; give its directory, {directory}"
    return "is a page of the hub and not a model; write hf://ORG/NAME" if _SITE.match(bare) else None


def _of_data(reference: str, bare: str) -> str | None:
    if "*" in bare:
        return "is a pattern; give one file"
    if "#" in reference and data_suffix(reference) is None:
        return why_not_data(reference)
    return foreign_ending(reference)


def why_no_directory(text: str) -> str:
    """What is said of a checkpoint that is no directory of this machine, as the end of a sentence about it."""
    path = Path(text)
    if path.is_file():
        if path.suffix.lower() in (".gz", ".tgz", ".tar", ".zip"):
            return "is a file; unpack it and give its directory"
        return f"is a file; give the directory that it lies in, {path.parent}"
    if path.is_symlink():
        return f"is a link to {path.readlink()}, which is gone; give a directory, or hf://organisation/name"
    if text.startswith("file://"):
        return "is not a directory; give it as a path, without file://"
    known = what_to_write(text, is_checkpoint=True) if _SCHEME.match(text) else None
    return known or f"is not a directory; give a directory, or {hub_example(text)}"


def hub_example(text: str) -> str:
    """How a model of the hub is referred to; the one that a bare name may mean."""
    is_name = _NAME.fullmatch(text) and not Path(text).parent.is_dir()
    return f"hf://{text}" if is_name else "hf://organisation/name"


def _of_path(path: str, *, is_checkpoint: bool) -> str:
    if path.startswith("/"):
        return f"has no scheme; write file://{path} if the operator has opened its directory, or {_SEND}"
    if is_checkpoint and _NAME.fullmatch(path) and path[0] not in ".~":
        return f"has no scheme; write hf://{path} for a model of the hub, or {_SEND}"
    return f"has no scheme; write https://, hf://ORG/NAME, s3://, file:/// or upload:ID, or {_SEND}"


def _on_hub(bare: str, *, is_checkpoint: bool) -> str | None:
    """The reference to what an address of the hub is about; None if it is that, or about something else."""
    found = _HUB.fullmatch(bare)
    if found is None:
        return None
    site, kind, repository, page, revision, file = found.groups(default="")
    if site.startswith("hf") and revision != "main":  # a directory may have the name of a page
        page, revision, file = "", "", "/".join(filter(None, (page, revision, file)))
    place = repository if revision in ("", "main") else f"{repository}@{revision}"
    is_page = site.startswith("http")
    file = file if page or not is_page else ""  # such as /discussions
    if is_checkpoint:
        is_model = kind != "datasets/" and (not file or page or is_checkpoint_file(file.rpartition("/")[2]))
        right = f"hf://{place}" if is_model else None
    elif is_page and file and (page == "resolve" or not kind):
        right = f"{site}{kind}{repository}/resolve/{revision or 'main'}/{file}"  # the file itself
    else:
        right = f"hf://datasets/{place}/{file or 'FILE'}" if file or is_page else None
    return None if right == bare else right

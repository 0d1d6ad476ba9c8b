"""Turns the references of a job into local files: a directory for a checkpoint, one file for a data set."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from axformer.data.formats import data_suffix, why_not_data
from axformer.intake.foreign import remedy_for, remedy_in
from axformer.intake.names import CONFIG, KNOWN_NAMES, MODULES, WEIGHTS_INDEX, is_checkpoint_file, is_shard
from store.errors import ReferenceFormError
from store.references import ParsedReference, Scheme, parse_reference
from store.storage.archives import ARCHIVE_SUFFIXES, is_archive
from worker.fetching.archive import unpack
from worker.fetching.cache import Entry
from worker.fetching.errors import (
    ReferenceDenied,
    ReferenceDiffers,
    ReferenceInvalid,
    ReferenceMissing,
    ReferenceTooLarge,
)
from worker.fetching.source import ReferenceSource
from worker.fetching.transfer import Transfer

_ABSENT = (ReferenceMissing, ReferenceDenied)
"""The answers of a source without listing to a missing file; object stores deny access instead of reporting it."""


@dataclass(frozen=True)
class Fetched:
    """The local copy of a reference."""

    path: Path
    sha256: str
    """Digest of a data file or an archive; for a directory, of its files' names and SHA-256s as a JSON object with sorted
    keys."""
    name: str
    """The owner's name for it: the name of the uploaded file, or the reference as it may be shown."""


@dataclass(frozen=True)
class Fetcher:
    """Fetches for one job."""

    transfer: Transfer
    open_source: Callable[[ParsedReference], ReferenceSource]

    def checkpoint(self, uri: str, into: Path, expected: str | None = None) -> Fetched:
        """Put a checkpoint's files into a directory, which is made. Other files at the reference are left alone.

        Args:
            expected: its SHA-256, as :class:`Fetched` has it; None takes what there is.

        Raises:
            FetchError: it cannot be had, is another one than expected, or there is no checkpoint.
        """
        reference = _parsed(uri, is_checkpoint=True)
        source = self.open_source(reference)
        into.mkdir(mode=0o700)
        if is_archive(source.filename):
            names, sha256 = self._archive(reference, source, into, expected)
        elif reference.scheme is Scheme.UPLOAD:
            kinds = ", ".join(ARCHIVE_SUFFIXES)
            raise ReferenceInvalid(
                f"upload '{source.filename}' is not an archive; upload a checkpoint as one of {kinds}"
            )
        else:
            digests = {name: entry.sha256 for name, entry in self._files(reference, source, into).items()}
            names, sha256 = list(digests), hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()
            _check(reference.shown, sha256, expected)
        name = _name(reference, source)
        if CONFIG not in names:
            raise _no_config(name, remedy_for(names))
        return Fetched(into, sha256, name)

    def data(self, uri: str, stem: Path, expected: str | None = None) -> Fetched:
        """Put a data file at ``stem`` plus the suffix that tells its format.

        Raises:
            FetchError: it cannot be had, is another one than expected, or its suffix is not known.
        """
        reference = _parsed(uri, is_checkpoint=False)
        source = self.open_source(reference)
        suffix, name = data_suffix(source.filename), _name(reference, source)
        if suffix is None:
            told = f"data{self.transfer.told_name(source) or source.filename}"
            suffix = data_suffix(told)
            if suffix is None:
                raise ReferenceInvalid(f"'{name}' {why_not_data(f'{reference.uri}#{told}')}")
        destination = stem.with_name(stem.name + suffix)
        limit = self.transfer.policy.max_bytes
        sha256 = self._bring(reference, source, None, destination, limit).sha256
        _check(name, sha256, expected)
        return Fetched(destination, sha256, name)

    def _archive(
        self, reference: ParsedReference, source: ReferenceSource, into: Path, expected: str | None
    ) -> tuple[Sequence[str], str]:
        """Unpack an archive; return the names of its files and its SHA-256."""
        policy = self.transfer.policy
        archive = into.with_name(f"{into.name}.archive")
        entry = self._bring(reference, source, None, archive, policy.max_bytes)
        try:
            _check(_name(reference, source), entry.sha256, expected)
            names = unpack(
                archive,
                source.filename,
                into,
                max_bytes=policy.max_bytes,
                max_members=policy.file_count,
                watch=self.transfer.watch,
            )
        finally:
            archive.unlink()
        return names, entry.sha256

    def _files(self, reference: ParsedReference, source: ReferenceSource, into: Path) -> dict[str, Entry]:
        names = source.names()
        if names is None:
            return self._probed(reference, source, into)
        wanted = [name for name in names if is_checkpoint_file(name)]
        if CONFIG not in wanted:
            remedy = remedy_in(Path(reference.path)) if reference.scheme is Scheme.FILE else remedy_for(names)
            raise _no_config(reference.shown, remedy)
        return self._bring_all(reference, source, into, wanted, self.transfer.policy.max_bytes)

    def _probed(self, reference: ParsedReference, source: ReferenceSource, into: Path) -> dict[str, Entry]:
        """The files of a source that cannot list: those with known names, then the shards that the index names."""
        limit = self.transfer.policy.max_bytes
        present = self._bring_all(reference, source, into, [CONFIG], limit)
        for name in KNOWN_NAMES:
            if name == CONFIG or ("/" in name and MODULES not in present):
                continue
            try:
                present |= self._bring_all(reference, source, into, [name], limit - _bytes(present))
            except _ABSENT:
                continue
        if WEIGHTS_INDEX in present:
            shards = [name for name in _shards(into / WEIGHTS_INDEX, reference) if name not in present]
            present |= self._bring_all(reference, source, into, shards, limit - _bytes(present))
        return present

    def _bring_all(
        self, reference: ParsedReference, source: ReferenceSource, into: Path, names: Sequence[str], limit: int
    ) -> dict[str, Entry]:
        """Bring files into a directory, together of ``limit`` bytes at most."""
        policy = self.transfer.policy
        if len(names) > policy.file_count:
            raise ReferenceTooLarge(
                f"'{reference.shown}' has {len(names)} files; at most {policy.file_count} are taken"
            )
        entries: dict[str, Entry] = {}
        for name in names:
            left = limit - _bytes(entries)
            cap = left if is_shard(Path(name).name) else min(left, policy.text_bytes)
            (into / name).parent.mkdir(exist_ok=True)
            entries[name] = self._bring(reference, source, name, into / name, cap)
        return entries

    def _bring(
        self, reference: ParsedReference, source: ReferenceSource, name: str | None, destination: Path, limit: int
    ) -> Entry:
        place = reference.uri if name is None else f"{reference.uri}\n{name}"
        return self.transfer.bring(source, place, name, destination, limit)


def _parsed(uri: str, *, is_checkpoint: bool) -> ParsedReference:
    try:
        return parse_reference(uri, is_checkpoint=is_checkpoint)
    except ReferenceFormError as error:
        raise ReferenceInvalid(str(error)) from None


def _name(reference: ParsedReference, source: ReferenceSource) -> str:
    return source.filename if reference.scheme is Scheme.UPLOAD else reference.shown


def _check(name: str, found: str, expected: str | None) -> None:
    if expected not in (None, found):
        raise ReferenceDiffers(
            f"'{name}' has the SHA-256 {found}, and the job says {expected}; "
            "find out why, or post the job with the digest of what you mean"
        )


def _bytes(entries: Mapping[str, Entry]) -> int:
    return sum(entry.size for entry in entries.values())


def _shards(index: Path, reference: ParsedReference) -> list[str]:
    try:
        names = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError):
        raise ReferenceInvalid(
            f"'{reference.shown}' has a {WEIGHTS_INDEX} that cannot be read; save it again"
        ) from None
    strange = [name for name in names if not (isinstance(name, str) and is_shard(name))]
    if strange:
        raise ReferenceInvalid(f"'{reference.shown}' has a {WEIGHTS_INDEX} that names {strange[0]!r}; save it again")
    return names


def _no_config(name: str, remedy: str) -> ReferenceMissing:
    return ReferenceMissing(f"'{name}' holds no {CONFIG}; {remedy}")

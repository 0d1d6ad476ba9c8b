"""What can go wrong while a reference is fetched, as one tree below :class:`FetchError`.

Each class carries a ``code`` (stable, for programs). A message names the reference without its query string, which may
hold a signature, and says what to do.
"""


class FetchError(Exception):
    """Base of everything that can go wrong while a reference is fetched."""

    code = "fetch_failed"
    param: str | None = None
    """The part of the job that holds the reference, set by who knows it."""


class ReferenceInvalid(FetchError):  # noqa: N818 - the tree's names say what the reference is
    """The reference is not written in a form that is understood."""

    code = "invalid_reference"


class ReferenceForbidden(FetchError):  # noqa: N818
    """The reference names a place that this service does not read."""

    code = "forbidden_reference"


class ReferenceDenied(FetchError):  # noqa: N818
    """The source refuses access."""

    code = "reference_denied"


class ReferenceMissing(FetchError):  # noqa: N818
    """Nothing is found at the reference."""

    code = "reference_not_found"


class ReferenceTooLarge(FetchError):  # noqa: N818
    """The reference holds more bytes or files than the service takes."""

    code = "reference_too_large"


class ReferenceDiffers(FetchError):  # noqa: N818
    """What the reference holds has another SHA-256 than the job says."""

    code = "digest_mismatch"


class ArchiveInvalid(FetchError):  # noqa: N818
    """An archive is damaged or holds what it must not."""

    code = "invalid_archive"


class SourceTooSlow(FetchError):  # noqa: N818
    """The source takes longer than a worker waits."""

    code = "source_too_slow"


class SourceUnavailable(FetchError):  # noqa: N818
    """The source did not answer, or broke off."""

    code = "source_unavailable"

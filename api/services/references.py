"""Check the references of a job before a worker fetches them, so that the caller learns at once what can never work.

The worker checks again, with the address resolved.
"""

from pathlib import Path

from api.errors import FieldError, InvalidInputError
from store.errors import ReferenceFormError
from store.references import Scheme, parse_reference, shown
from store.settings import Settings


def check_reference(uri: str, pointer: str, *, is_checkpoint: bool, settings: Settings) -> None:
    """Refuse a reference that cannot work; ``pointer`` is its place in the body.

    Raises:
        InvalidInputError: unknown scheme, malformed, plain http, or a file outside of the opened roots or behind links in a
            circle.
    """
    try:
        reference = parse_reference(uri, is_checkpoint=is_checkpoint)
    except ReferenceFormError as error:
        raise _invalid(str(error), pointer) from None
    if reference.scheme is Scheme.HTTP and not settings.fetch.plain_http:
        raise refused(uri, pointer, "is not read over plain http; use an https:// address")
    if reference.scheme is Scheme.FILE:
        try:
            resolved = Path(reference.path).resolve()
        except (OSError, RuntimeError):
            raise refused(uri, pointer, "has links that lead in a circle; check the path") from None
        if not any(resolved.is_relative_to(root) for root in settings.file_roots):
            opened = ", ".join(map(str, settings.file_roots)) or "none"
            raise refused(uri, pointer, f"lies outside of the directories opened for file://, which are: {opened}")


def refused(uri: str, pointer: str, why: str) -> InvalidInputError:
    """The error for a reference; ``why`` goes on after "reference 'x'"."""
    return _invalid(f"reference '{shown(uri)}' {why}", pointer)


def _invalid(detail: str, pointer: str) -> InvalidInputError:
    return InvalidInputError(detail, code="invalid_reference", errors=[FieldError(detail, pointer=pointer)])

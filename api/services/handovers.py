"""Have the files of a job put where its owner wants them."""

from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from api.errors import FieldError, InvalidInputError, WrongStateError
from api.services import jobs
from axformer.wire.handovers import DeliverTo
from store.errors import ReferenceFormError
from store.references import ParsedReference, Scheme, parse_reference, shown
from store.repositories import handovers as repository
from store.repositories.audit import Actor, note
from store.settings import Settings
from store.signing import open_vault
from store.states import TERMINAL, JobState
from store.tables.jobs import Job

_KEY_PARTS = (2, 3)
"""Of a token for a bucket: the key's id, the key, and perhaps the token of a session."""


def deliver(session: Session, settings: Settings, actor: Actor, job_id: str, body: DeliverTo) -> Job:
    """Put the files of a job somewhere now, or when it has succeeded; replaces what was asked for before.

    Raises:
        NoSuchObjectError: the team has no such job.
        WrongStateError: it has ended without a result.
        InvalidInputError: the place or the token cannot be used.
    """
    _check_ends_well(jobs.find(session, actor.team_id, job_id))
    locked = locked_target(settings, body, "#")
    try:
        asked = repository.ask(session, job_id, body.uri, locked)
    except NoResultFound:  # deleted between two statements
        raise jobs.no_job(job_id) from None
    _check_ends_well(asked)  # under its lock, since it may just have failed
    note(session, actor, "job.deliver", job_id)
    return asked


def _check_ends_well(job: Job) -> None:
    if job.state in TERMINAL and job.state is not JobState.SUCCEEDED:
        raise WrongStateError(f"{job.id} is {job.state} and has no files; retry it first", code="wrong_state")


def locked_target(settings: Settings, body: DeliverTo, pointer: str) -> bytes:
    """The token as it may be stored, if files can be put at the place with it.

    Raises:
        InvalidInputError: the place or the token cannot be used.
    """
    reference = _place(body, pointer)
    token = body.token.get_secret_value()
    if reference.scheme is Scheme.S3:
        if settings.storage_bucket is not None and reference.place == settings.storage_bucket[0]:
            raise _refused(f"'{shown(body.uri)}' is the service's own bucket; name another", f"{pointer}/uri")
        if len(token.split(":", 2)) not in _KEY_PARTS:
            raise _refused(
                "is no key of a bucket; write KEY_ID:SECRET or KEY_ID:SECRET:SESSION_TOKEN", f"{pointer}/token"
            )
    return open_vault(settings).lock(token)


def _place(body: DeliverTo, pointer: str) -> ParsedReference:
    try:
        reference = parse_reference(body.uri, is_checkpoint=True)
    except ReferenceFormError as error:
        raise _refused(str(error), f"{pointer}/uri") from None
    if reference.scheme not in (Scheme.S3, Scheme.HUB):
        detail = f"nothing is put at '{shown(body.uri)}'; name s3://bucket/prefix or hf://organisation/name"
        raise _refused(detail, f"{pointer}/uri")
    return reference


def _refused(detail: str, pointer: str) -> InvalidInputError:
    return InvalidInputError(detail, code="invalid_target", errors=[FieldError(detail, pointer=pointer)])

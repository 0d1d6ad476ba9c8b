"""What teams may do with webhooks: use them in jobs, create and delete secrets, see messages and send them again."""

from datetime import timedelta
from urllib.parse import urlsplit

from sqlalchemy.orm import Session

from api.errors import FieldError, InvalidInputError, NoSuchObjectError
from axformer.wire.webhooks import Webhook
from store.addresses import is_public, numeric_addresses
from store.references import shown
from store.repositories import deliveries as repository
from store.repositories.audit import Actor, note
from store.repositories.deliveries import NewSecret, redeliver, valid_secrets
from store.settings import Settings
from store.signing import signing_key
from store.tables.jobs import Job
from store.tables.webhooks import Delivery

_POINTER = "#/webhook"
_LOCAL = ("localhost", ".localhost", ".local", ".internal")


def check_webhook(settings: Settings, webhook: Webhook) -> None:
    """Refuse an address that can never be used. A name is resolved and checked again when a message is sent.

    Raises:
        InvalidInputError: wrong scheme, malformed, or at an address that is not public.
    """
    url = webhook.url
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise _refused(url, f"is not a URL: {error}") from None
    if parts.scheme != "https" and not (parts.scheme == "http" and settings.webhook.plain_http):
        raise _refused(url, "is not sent to; use an https:// address")
    if "@" in parts.netloc:
        raise _refused(url, "holds a user name or password; leave them out")
    if not host:
        raise _refused(url, "names no host")
    if host in settings.webhook.private_hosts:
        return
    is_local = host == _LOCAL[0] or host.endswith(_LOCAL[1:])
    if is_local or not all(is_public(address) for address in numeric_addresses(host)):
        raise _refused(url, "is not at a public address; the operator can allow the host")


def check_secret(session: Session, team_id: str) -> None:
    """Check that messages of the team can be signed.

    Raises:
        InvalidInputError: the team has no secret.
    """
    if not valid_secrets(session, team_id):
        detail = "your team has no secret that would sign its messages; POST /v1/webhook-secrets makes one"
        raise InvalidInputError(detail, code="no_webhook_secret", errors=[FieldError(detail, pointer=_POINTER)])


def create_secret(session: Session, settings: Settings, actor: Actor) -> NewSecret:
    """Create a secret. The previous one also signs for a while, older ones stop signing. The change is recorded."""
    overlap = timedelta(hours=settings.webhook.overlap_hours)
    made = repository.create_secret(session, actor.team_id, signing_key(settings), overlap)
    note(session, actor, "webhook_secret.create", made.row.id)
    return made


def delete_secret(session: Session, actor: Actor, secret_id: str) -> None:
    """Delete a secret, which stops signing. The change is recorded.

    Raises:
        NoSuchObjectError: the team has none of this id.
    """
    if not secret_id.isprintable() or not repository.delete_secret(session, actor.team_id, secret_id):
        raise NoSuchObjectError(f"your team has no webhook secret '{secret_id}'", code="webhook_secret_not_found")
    note(session, actor, "webhook_secret.delete", secret_id)


def send_again(session: Session, job: Job, delivery_id: str) -> Delivery:
    """Send a message of a job again, with all attempts before it.

    Raises:
        NoSuchObjectError: the job has no such message.
    """
    delivery = redeliver(session, job.id, delivery_id) if delivery_id.isprintable() else None
    if delivery is None:
        detail = f"job {job.id} has no message '{delivery_id}'; GET /v1/jobs/{job.id}/deliveries lists those there are"
        raise NoSuchObjectError(detail, code="delivery_not_found")
    return delivery


def _refused(url: str, why: str) -> InvalidInputError:
    detail = f"webhook '{shown(url)}' {why}"
    return InvalidInputError(detail, code="invalid_webhook", errors=[FieldError(detail, pointer=f"{_POINTER}/url")])

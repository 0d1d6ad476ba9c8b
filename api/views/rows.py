"""Other rows of the store as the API shows them: the public fields, without secrets."""

from urllib.parse import quote

from api.views.jobs import job_path
from axformer.plan.trial import Trial
from axformer.wire.artifacts import ArtifactRead, UploadRead
from axformer.wire.base import PageRead
from axformer.wire.events import EventRead
from axformer.wire.webhooks import DeliveryRead, DeliveryState, WebhookSecretCreated, WebhookSecretRead
from store.page import Page
from store.references import shown
from store.repositories.deliveries import NewSecret
from store.tables.events import Event
from store.tables.files import Artifact, Upload
from store.tables.webhooks import Delivery, WebhookSecret


def event_read(event: Event) -> EventRead:
    """An event as it is shown."""
    return EventRead(seq=event.seq, type=event.type, data=event.data, created_at=event.created_at)


def artifact_read(artifact: Artifact) -> ArtifactRead:
    """A file as it is shown."""
    return ArtifactRead(
        name=artifact.name,
        sha256=artifact.sha256,
        bytes=artifact.bytes,
        media_type=artifact.media_type,
        created_at=artifact.created_at,
        url=f"{job_path(artifact.job_id)}/artifacts/{quote(artifact.name)}",
    )


def upload_read(upload: Upload) -> UploadRead:
    """An upload as it is shown."""
    return UploadRead(
        id=upload.id,
        uri=f"upload:{upload.id}",
        filename=upload.filename,
        sha256=upload.sha256,
        bytes=upload.bytes,
        created_at=upload.created_at,
    )


def events_page(page: Page[Event], after: int) -> PageRead[EventRead, int]:
    """Events as a page; an empty page continues where it was asked to begin."""
    following = page.items[-1].seq if page.items else after
    events = [event_read(event) for event in page.items]
    return PageRead[EventRead, int](data=events, has_more=page.has_more, next=following)


def secret_read(row: WebhookSecret) -> WebhookSecretRead:
    """A secret as it is shown, without its text."""
    return WebhookSecretRead(id=row.id, created_at=row.created_at, expires_at=row.expires_at)


def secret_created(new: NewSecret) -> WebhookSecretCreated:
    """A secret as it is shown once."""
    return WebhookSecretCreated(**dict(secret_read(new.row)), secret=new.text)


def delivery_read(delivery: Delivery) -> DeliveryRead:
    """A message as it is shown."""
    return DeliveryRead(
        id=delivery.id,
        seq=delivery.seq,
        type=delivery.type,
        url=shown(delivery.url),
        state=delivery.state,
        attempts=delivery.attempts,
        last_status=delivery.last_status,
        last_error=delivery.last_error,
        attempted_at=delivery.attempted_at,
        next_at=delivery.next_at if delivery.state is DeliveryState.PENDING else None,
        created_at=delivery.created_at,
    )


def deliveries_page(page: Page[Delivery], after: int) -> PageRead[DeliveryRead, int]:
    """Messages as a page; an empty page continues where it was asked to begin."""
    following = page.items[-1].seq if page.items else after
    messages = [delivery_read(delivery) for delivery in page.items]
    return PageRead[DeliveryRead, int](data=messages, has_more=page.has_more, next=following)


def trials_page(page: Page[Trial], after: int) -> PageRead[Trial, int]:
    """Trials as a page; an empty page continues where it was asked to begin."""
    following = page.items[-1].seq if page.items else after
    return PageRead[Trial, int](data=list(page.items), has_more=page.has_more, next=following)

"""Other rows of the store as the API shows them: the public fields, without secrets."""

from collections.abc import Sequence
from typing import TypeVar
from urllib.parse import quote

from api.services.keys import Replaced
from api.views.jobs import fields_of, job_path
from axformer.plan.trial import Trial
from axformer.wire.artifacts import ArtifactRead, UploadRead
from axformer.wire.base import PageRead
from axformer.wire.events import EventRead
from axformer.wire.keys import AuditRead, KeyCreated, KeyRead, KeyRotated
from axformer.wire.webhooks import DeliveryRead, DeliveryState
from store.page import Page
from store.references import shown
from store.repositories.keys import NewKey
from store.tables.audit import AuditEntry
from store.tables.files import Artifact, Upload
from store.tables.teams import ApiKey
from store.tables.webhooks import Delivery

Numbered = TypeVar("Numbered", EventRead, DeliveryRead, Trial)


def page_after(data: Sequence[Numbered], after: int, *, has_more: bool) -> PageRead[Numbered, int]:
    """What follows this number as a page; an empty one continues where it was asked to begin."""
    return PageRead(data=list(data), has_more=has_more, next=data[-1].seq if data else after)


def artifact_read(artifact: Artifact) -> ArtifactRead:
    """A file as it is shown."""
    return fields_of(ArtifactRead, artifact, url=f"{job_path(artifact.job_id)}/artifacts/{quote(artifact.name)}")


def upload_read(upload: Upload) -> UploadRead:
    """An upload as it is shown."""
    return fields_of(UploadRead, upload, uri=f"upload:{upload.id}")


def delivery_read(delivery: Delivery) -> DeliveryRead:
    """A message as it is shown."""
    next_at = delivery.next_at if delivery.state is DeliveryState.PENDING else None
    return fields_of(DeliveryRead, delivery, url=shown(delivery.url), next_at=next_at)


def key_read(row: ApiKey) -> KeyRead:
    """A key, without its secret."""
    return fields_of(KeyRead, row, scopes=list(row.scope.included))


def key_created(made: NewKey) -> KeyCreated:
    """A key with its secret."""
    return KeyCreated(**dict(key_read(made.row)), key=made.text)


def key_rotated(replaced: Replaced) -> KeyRotated:
    """A key with its secret, and the key that it replaces."""
    return KeyRotated(**dict(key_created(replaced.new)), replaces=key_read(replaced.old))


def keys_page(page: Page[ApiKey]) -> PageRead[KeyRead, str]:
    """Keys, the newest first."""
    last = page.items[-1].id if page.items else None
    return PageRead(data=[key_read(row) for row in page.items], has_more=page.has_more, next=last)


def audit_page(page: Page[AuditEntry]) -> PageRead[AuditRead, int]:
    """Entries, the newest first."""
    data = [fields_of(AuditRead, entry, at=entry.created_at) for entry in page.items]
    return PageRead(data=data, has_more=page.has_more, next=data[-1].id if data else None)

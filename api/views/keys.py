"""Keys and the audit log as they are shown."""

from typing import Any

from api.services.keys import Replaced
from axformer.wire.base import PageRead
from axformer.wire.keys import AuditRead, KeyCreated, KeyRead, KeyRotated
from store.page import Page
from store.repositories.keys import NewKey
from store.tables.audit import AuditEntry
from store.tables.teams import ApiKey


def key_read(row: ApiKey) -> KeyRead:
    """A key, without its secret."""
    return KeyRead(**_shown(row))


def key_created(made: NewKey) -> KeyCreated:
    """A key with its secret."""
    return KeyCreated(**_shown(made.row), key=made.text)


def key_rotated(replaced: Replaced) -> KeyRotated:
    """A key with its secret, and the key that it replaces."""
    return KeyRotated(**_shown(replaced.new.row), key=replaced.new.text, replaces=key_read(replaced.old))


def keys_page(page: Page[ApiKey]) -> PageRead[KeyRead, str]:
    """Keys, the newest first."""
    last = page.items[-1].id if page.items else None
    return PageRead(data=[key_read(row) for row in page.items], has_more=page.has_more, next=last)


def audit_page(page: Page[AuditEntry]) -> PageRead[AuditRead, int]:
    """Entries, the newest first."""
    data = [
        AuditRead(
            id=entry.id,
            at=entry.created_at,
            key_id=entry.key_id,
            action=entry.action,
            object_id=entry.object_id,
            address=entry.address,
            times=entry.times,
        )
        for entry in page.items
    ]
    return PageRead(data=data, has_more=page.has_more, next=data[-1].id if data else None)


def _shown(row: ApiKey) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "scopes": list(row.scope.included),
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "last_used_at": row.last_used_at,
        "revoked_at": row.revoked_at,
        "replaced_by": row.replaced_by,
    }

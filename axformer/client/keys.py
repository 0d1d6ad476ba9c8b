"""The client's calls for keys and for the audit log."""

from collections.abc import Iterator
from datetime import datetime
from urllib.parse import quote

from axformer.client.answers import AuditEntry, Key, Me, NewKey, Page, RotatedKey
from axformer.client.calls import Calls


class KeyCalls(Calls):
    """Keys of a team, and its audit log."""

    def me(self) -> Me:
        """The team, the id and the scope of the key."""
        return self._connection.read(Me, "GET", "/me")

    def keys(self) -> Iterator[Key]:
        """Your team's keys, newest first, including invalid ones. For admins."""
        return self._pages(Page[Key, str], "/keys", {})

    def create_key(self, name: str, scope: str = "write", expires_at: datetime | None = None) -> NewKey:
        """Create a key; its text is returned only once. Not retried if the service may have acted. For admins.

        Args:
            name: what it is for.
            scope: ``read``, ``write`` or ``admin``; each includes those before it.
            expires_at: when it expires, with a time zone; None for never.
        """
        body = {"name": name, "scopes": [scope], "expires_at": None if expires_at is None else expires_at.isoformat()}
        return self._connection.read(NewKey, "POST", "/keys", json=body, again=False)

    def rotate_key(self, key_id: str, grace_hours: float | None = None) -> RotatedKey:
        """Replace a key; the old one stays valid for a while. Not retried if the service may have acted. For admins.

        Args:
            key_id: id of the old key.
            grace_hours: how long the old one stays valid; None for the operator's setting.
        """
        body = {} if grace_hours is None else {"grace_hours": grace_hours}
        return self._connection.read(
            RotatedKey, "POST", f"/keys/{quote(key_id, safe='')}/rotate", json=body, again=False
        )

    def revoke_key(self, key_id: str, *, even_last: bool = False) -> None:
        """Revoke a key at once. The last admin key is kept unless ``even_last`` is set. For admins."""
        asked = {"even_last": even_last}
        self._connection.ask("DELETE", f"/keys/{quote(key_id, safe='')}", params=asked)

    def audit(self) -> Iterator[AuditEntry]:
        """The changes made by your team, with who made them, newest first. For admins."""
        return self._pages(Page[AuditEntry, int], "/audit", {})

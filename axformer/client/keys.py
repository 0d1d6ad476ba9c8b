"""The calls of the client that are about keys, and about who did what with them."""

from collections.abc import Iterator
from datetime import datetime
from urllib.parse import quote

from axformer.client.answers import AuditEntry, Key, Me, NewKey, Page, RotatedKey
from axformer.client.calls import Calls


class KeyCalls(Calls):
    """Keys of a team, and its audit log."""

    def me(self) -> Me:
        """Which team and key this is, and what the key may do."""
        return self._connection.read(Me, "GET", "/me")

    def keys(self) -> Iterator[Key]:
        """Your team's keys, newest first, also those that are not valid any more. For admins."""
        return self._pages(Page[Key, str], "/keys", {})

    def create_key(self, name: str, scope: str = "write", expires_at: datetime | None = None) -> NewKey:
        """Make a key; its text is told this once. Not sent again where it may have been served. For admins.

        Args:
            name: what it is for.
            scope: ``read``, ``write`` or ``admin``; each includes those before it.
            expires_at: from when on it is refused, with a time zone; without it never.
        """
        body = {"name": name, "scopes": [scope], "expires_at": None if expires_at is None else expires_at.isoformat()}
        return self._connection.read(NewKey, "POST", "/keys", json=body, again=False)

    def rotate_key(self, key_id: str, grace_hours: float | None = None) -> RotatedKey:
        """Make a key that takes the place of another, which stays valid for a while. Not sent again where it may have been
        served. For admins.

        Args:
            key_id: of the old key.
            grace_hours: how long the old one stays valid; without it what the operator has set.
        """
        body = {} if grace_hours is None else {"grace_hours": grace_hours}
        return self._connection.read(
            RotatedKey, "POST", f"/keys/{quote(key_id, safe='')}/rotate", json=body, again=False
        )

    def revoke_key(self, key_id: str, *, even_last: bool = False) -> None:
        """Let a key be valid no more, at once. The last one for admins is kept unless ``even_last``. For admins."""
        asked = {"even_last": even_last}
        self._connection.ask("DELETE", f"/keys/{quote(key_id, safe='')}", params=asked)

    def audit(self) -> Iterator[AuditEntry]:
        """The changes made by your team, with who made them, newest first. For admins."""
        return self._pages(Page[AuditEntry, int], "/audit", {})

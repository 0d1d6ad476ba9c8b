"""Common parts of the client's calls: the connection, paged lists, idempotent requests, and uploads."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from axformer.client.address import find_address
from axformer.client.answers import Page, Upload
from axformer.client.connection import Connection
from axformer.client.errors import TransferError
from axformer.client.packing import Watched, packed
from axformer.client.patience import Patience
from axformer.wire.base import Item, Shape

LOOK_EVERY = 1.0
"""Seconds between polls of a job; a worker stores new trials no more often."""
_KEY_BYTES = 16
"""Bytes of an ``Idempotency-Key``, enough to be unique."""


class Calls:
    """A connection to the service with one key."""

    def __init__(self, url: str | None = None, api_key: str | None = None, *, patience: Patience | None = None) -> None:
        """Connect to an address with a key.

        Args:
            url: address of the service; by default ``AXFORMER_URL``, the one from ``axformer login``, or ``var/serve.json``.
            api_key: a key of your team; by default ``AXFORMER_API_KEY`` or the one stored with the address.
            patience: how long to wait and how often to try again.

        Raises:
            AddressError: there is no address or no key.
        """
        self._patience = patience or Patience()
        address = find_address(url, api_key)
        self.url = address.url
        self._connection = Connection(address, self._patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._connection.close()

    def upload(self, path: str | Path, on_progress: Callable[[int], None] = lambda _: None) -> Upload:
        """Send a file, or the directory of a checkpoint as an archive of its configuration, tokenizer and safetensors.

        The file is read in pieces, and sent again if the connection breaks. If the first copy arrived after all, no job
        uses it, and retention removes it.

        Args:
            path: of the file or directory.
            on_progress: called after each piece with the number of bytes sent; negative when sending starts over.

        Raises:
            InputError: the path cannot be read, or the directory is not a checkpoint.
            TransferError: the service received different bytes than were sent.
        """
        with packed(Path(path)) as sent:
            files = {"file": (sent.name, Watched(sent.file, on_progress))}
            stored = self._connection.read(Upload, "POST", "/uploads", files=files)
        if stored.sha256 != sent.sha256:
            raise TransferError(f"'{path}' has changed while it was sent, or on the way ({stored.id}); send it again")
        return stored

    def uploaded(self, uri: str) -> Upload:
        """The file behind a reference ``upload:ID``."""
        return self._connection.read(Upload, "GET", f"/uploads/{quote(uri.removeprefix('upload:'), safe='')}")

    def _pages(self, shape: type[Page[Item, Any]], path: str, asked: Mapping[str, Any]) -> Iterator[Item]:
        """Yield the items of a list, reading pages as needed."""
        after: dict[str, Any] = {}
        while True:
            answer = self._connection.read(shape, "GET", path, params={**asked, **after})
            yield from answer.data
            if not answer.has_more:
                return
            after = {"after": answer.next}

    def _make(self, shape: type[Shape], path: str, body: Mapping[str, Any], idempotency_key: str | None) -> Shape:
        """Create one object, however often the request is sent; None values are left out."""
        said = {field: value for field, value in body.items() if value is not None}
        headers = {"Idempotency-Key": idempotency_key or secrets.token_hex(_KEY_BYTES)}
        return self._connection.read(shape, "POST", path, json=said, headers=headers)

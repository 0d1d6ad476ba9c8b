"""What all calls of the client need: the connection, lists page by page, requests that make one thing, and uploads."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from axformer.client.address import find_address
from axformer.client.answers import Page, Upload
from axformer.client.connection import Connection
from axformer.client.errors import TransferError
from axformer.client.packing import Watched, packed
from axformer.client.patience import Patience
from axformer.wire.base import Shape
from axformer.wire.page import Item

LOOK_EVERY = 1.0
"""Seconds between two looks at a job; a worker stores new trials no more often."""
_KEY_BYTES = 16
"""Of an ``Idempotency-Key``: no two are ever the same."""


class Calls:
    """A connection to the service with one key."""

    def __init__(self, url: str | None = None, api_key: str | None = None, *, patience: Patience | None = None) -> None:
        """Take an address and a key.

        Args:
            url: of the service; without it ``AXFORMER_URL``, what ``axformer login`` has stored, or ``var/serve.json``.
            api_key: of your team; without it ``AXFORMER_API_KEY`` or the one that was stored with the address.
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._connection.close()

    def upload(self, path: str | Path, on_progress: Callable[[int], None] = lambda _: None) -> Upload:
        """Send a file, or the directory of a checkpoint as an archive of its configuration, tokenizer and safetensors.

        The file is read in pieces. It is sent again where the way to the service breaks; should the first have arrived after
        all, it stays as a second copy that no job names, until retention removes it.

        Args:
            path: of the file or directory.
            on_progress: called after each piece with the number of bytes sent; negative when sending starts over.

        Raises:
            InputError: the path cannot be read, or the directory is not a checkpoint.
            TransferError: the service has received other bytes than were sent.
        """
        with packed(Path(path)) as sent:
            files = {"file": (sent.name, Watched(sent.file, on_progress))}
            stored = self._connection.read(Upload, "POST", "/uploads", files=files)
        if stored.sha256 != sent.sha256:
            raise TransferError(f"'{path}' has changed while it was sent, or on the way ({stored.id}); send it again")
        return stored

    def _pages(self, shape: type[Page[Item, Any]], path: str, asked: Mapping[str, Any]) -> Iterator[Item]:
        """The items of a list, page by page as they are taken."""
        after: dict[str, Any] = {}
        while True:
            answer = self._connection.read(shape, "GET", path, params={**asked, **after})
            yield from answer.data
            if not answer.has_more:
                return
            after = {"after": answer.next}

    def _make(self, shape: type[Shape], path: str, body: Mapping[str, Any], idempotency_key: str | None) -> Shape:
        """Make one thing, however often the request is sent; None values are left out."""
        said = {field: value for field, value in body.items() if value is not None}
        headers = {"Idempotency-Key": idempotency_key or secrets.token_hex(_KEY_BYTES)}
        return self._connection.read(shape, "POST", path, json=said, headers=headers)

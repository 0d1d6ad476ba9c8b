"""References to checkpoints and data in requests: a URI, an upload, or a local path, which is uploaded first."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from axformer.client.answers import Upload

Reference = str | Path | Upload
"""A checkpoint or data: a URI such as ``hf://organisation/name``, a local path, or an upload."""


def is_reference(text: str) -> bool:
    """Whether a text is a reference; anything else is a local path."""
    return "://" in text or text.startswith("upload:")


class References:
    """The references of one request; each path is uploaded once."""

    def __init__(self, upload: Callable[[Path], Upload]) -> None:
        self._upload = upload
        self._uploaded: dict[Path, str] = {}

    def of_job(
        self, sources: Mapping[str, Reference | None], columns: Mapping[str, str] | None
    ) -> dict[str, dict[str, Any]]:
        """The given sources by role; all except the checkpoint have these columns."""
        named: dict[str, dict[str, Any]] = {}
        for role, source in sources.items():
            if source is not None:
                named[role] = {"uri": self._uri(source)}
                if columns and role != "checkpoint":
                    named[role]["columns"] = dict(columns)
        return named

    def _uri(self, reference: Reference) -> str:
        if isinstance(reference, Path):
            if reference not in self._uploaded:
                self._uploaded[reference] = self._upload(reference).uri
            return self._uploaded[reference]
        return reference.uri if isinstance(reference, Upload) else reference

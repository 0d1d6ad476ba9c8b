"""Read the public data sets as they lie in one directory: JSON Lines, the large ones gzipped."""

import gzip
import json
from pathlib import Path
from typing import Any

from benchmarks.rows import Row


def read_objects(path: Path) -> list[dict[str, Any]]:
    """All objects of ``path``, or of the same name with ``.gz``."""
    packed = path.with_name(f"{path.name}.gz")
    content = gzip.decompress(packed.read_bytes()) if packed.is_file() else path.read_bytes()
    return [json.loads(line) for line in content.decode().split("\n") if line]


def read_labelled(path: Path) -> list[Row]:
    """Labelled texts, or pairs of texts."""
    return [Row(**found) for found in read_objects(path)]

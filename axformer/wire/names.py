"""The names of a run's inputs for people, as cards and reports show them."""

import re
from pathlib import Path

_ANY = re.compile(r"(checkpoint|model|output)([-_]\d+)?(\.(zip|tar|tgz|tar\.gz))?", re.IGNORECASE)


def says_nothing(name: str) -> bool:
    """Whether a checkpoint's name is one that any may have, such as ``checkpoint-500`` or ``model.tar``."""
    return _ANY.fullmatch(name) is not None


def shown_name(reference: str) -> str:
    """The name of an input: a hub's reference as it is, of other places the last part without a query.

    If that says nothing, as for ``reviews/checkpoint-500``, it is the directory's.
    """
    if reference.startswith("hf://"):
        return reference
    if "://" not in reference:
        path = Path(reference).resolve()
        return path.parent.name if says_nothing(path.name) and path.parent.name else path.name
    return re.split(r"[?#]", reference, maxsplit=1)[0].rstrip("/").rpartition("/")[2]

"""The program that loads a form with this package in a fresh process: ``python -m axformer.forms.answering NAME``, see
:mod:`axformer.forms.fresh`. The interval of garbage collection is set before anything large is imported."""

import gc
import sys
from pathlib import Path

_ALLOCATIONS = 50_000
"""Allocations between two garbage collections. With Python's 700, collections take a seventh of the time of the imports without
making the process smaller."""


def main(name: str) -> None:
    """Answer a request with the form of this name."""
    gc.set_threshold(_ALLOCATIONS)
    from axformer.forms.alone import answer
    from axformer.forms.kinds import kind_named
    from axformer.forms.memory import peak_bytes

    load = kind_named(name).load
    answer(lambda directory, device: load(Path(directory), device), peak_bytes)


if __name__ == "__main__":
    main(sys.argv[1])
    gc.freeze()  # without this, a last garbage collection over all imported objects takes a second

"""How long the parts of a report may be, whoever writes it.

A service stores reports that the confined process of a job has written, and lists show parts of them. Each bound lies above
what the library writes of the largest model and data that intake admits.
"""

import json
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

FIGURES, FORMS, SETS, NOTES = 32, 16, 16, 100
"""Metrics of a model, forms of a result, data sets, notes."""
LAYERS, CLASSES, ELEMENTS, DIMENSIONS = 96, 100_000, 8_000_000, 1_000_000
"""Layers, classes and elements of a model, and columns of all its hidden states."""
TRIALS, POINTS = 500_000, 1000
"""Trials of a run, and so its acceptances; points of a training's curve, cells of a table of speeds, steps of a curve."""
TEXT, KNOBS = 4000, 2**21
"""Characters of words for people; bytes of all knobs, which may list elements in an order."""

Word = Annotated[str, StringConstraints(max_length=512)]
"""A name: of a class, as long as intake admits it."""
Text = Annotated[str, StringConstraints(max_length=TEXT)]
"""Words for people; the library's longest have some hundreds of characters, and contain long paths."""
ElementId = Annotated[str, StringConstraints(max_length=2**19)]
"""The id of an element, which may list its neurons."""
Figures = Annotated[dict[Word, float], Field(max_length=FIGURES)]


def at_most(most: int) -> AfterValidator:
    """Checks that a value whose parts are not known has at most so many bytes as JSON."""

    def check(value: Any) -> Any:
        if len(json.dumps(value, default=str)) > most:
            raise ValueError(f"has more than {most:,} bytes")
        return value

    return AfterValidator(check)


Anything = Annotated[dict[str, Any], at_most(2**16)]
"""What depends on a machine, or on a version."""

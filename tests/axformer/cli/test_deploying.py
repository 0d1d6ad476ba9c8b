"""What a finished command says of its result: how to load each form."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from axformer.cli.deploying import show_loading
from axformer.forms.kinds import COMPACT, KINDS, ONNX, ONNX_INT8, ZEROED


def told(*made: str, task: str = "classification") -> str:
    console = Console(file=StringIO(), width=60)
    report = {"task": task, "forms": [{"name": name, "made": name in made} for name in KINDS]}
    show_loading(console, report, Path("some/result"))
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("made", [(COMPACT, ONNX_INT8), (COMPACT, ZEROED, ONNX), tuple(KINDS)])
def test_every_form_that_was_made_is_named_with_what_loads_it_and_no_other(made: tuple[str, ...]) -> None:
    lines = told(*made).splitlines()
    assert [line.partition(":")[0].strip() for line in lines] == [
        "Load it",
        *(f"some/result/{KINDS[name].place}" for name in made),
    ]
    assert "import axformer.auto" in lines[1 + made.index(COMPACT)]


def test_an_embedder_is_loaded_by_sentence_transformers() -> None:
    lines = told(COMPACT, ZEROED, task="embedding")
    assert "model/: by sentence-transformers, after `import axformer.auto`" in lines
    assert "zeroed/: by sentence-transformers alone" in lines


def test_where_all_forms_need_this_package_the_way_out_is_told() -> None:
    assert "without this package: axformer export some/result --data FILE" in told(COMPACT)

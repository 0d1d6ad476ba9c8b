"""What Python's users see of a result: a short line, a table, and files when they ask for them."""

from pathlib import Path

import pytest

import axformer
from axformer.errors import ConfigError
from axformer.result import Result
from tests.loopback import Loopback
from tests.model_hub import TOKEN, Hub
from tests.tiny_models import tiny_model, tiny_rows, tiny_tokenizer


@pytest.fixture(scope="module")
def result() -> Result:
    knobs = {"method": "compress", "confirm": 0.0, "within_points": None, "budgets": [0.5], "accept_poor_model": True}
    return axformer.prune(
        tiny_model(), tiny_tokenizer(), tiny_rows(30), preset="paper", test=tiny_rows(20, seed=1), **knobs
    )


def test_before_it_is_saved_it_says_how_to(result: Result) -> None:
    assert repr(result) == "Result(2 trials, 1 accepted; call save(directory) to measure and write it)"
    assert (result.report, result.table, result.advice) == (None, None, None)
    assert "call save(directory)" in result._repr_html_()


def test_a_form_that_is_none_is_refused_before_anything_is_written(result: Result, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'tiny' is not a form; there are stock, compact"):
        result.save(tmp_path / "never", forms=["tiny"])
    assert not (tmp_path / "never").exists()


def test_saved_it_has_a_table_and_an_advice(result: Result, tmp_path: Path) -> None:
    said = result.save(tmp_path / "smaller", forms=["compact"])
    assert said == result.advice
    assert (tmp_path / "smaller" / "report.json").is_file()
    assert result.table is not None
    assert [row["form"] for row in result.table] == ["before", "PyTorch"]
    assert set(result.table[0]) == {
        *("form", "held-out accuracy", "change", "answers changed", "one input, ms"),
        *("times as fast", "inputs a second", "MB"),
    }
    html = result._repr_html_()
    assert html.count("<tr>") == 3
    assert said.split(":")[0] in html
    assert axformer.load(tmp_path / "smaller").device.type == "cpu"


@pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")  # of the hub's library
def test_it_goes_to_the_hub_as_it_was_saved(result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub()
    with Loopback(hub) as hub.server:
        monkeypatch.setattr(
            "huggingface_hub.constants.ENDPOINT", hub.server.url
        )  # HF_ENDPOINT, which is read on import
        result.save(tmp_path / "smaller", forms=["compact"])
        assert result.push_to_hub("org/name", token=TOKEN).startswith(hub.server.url)
    (pushed,) = hub.commits
    written = {path.relative_to(tmp_path / "smaller").as_posix() for path in (tmp_path / "smaller").rglob("*.*")}
    assert set(pushed) == {name.removeprefix("model/") for name in written}
    assert pushed["README.md"] == (tmp_path / "smaller" / "README.md").read_bytes()
    assert pushed["model.safetensors"] == (tmp_path / "smaller" / "model" / "model.safetensors").read_bytes()

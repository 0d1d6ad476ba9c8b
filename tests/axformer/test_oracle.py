"""The pass against the naive reference beside the project: the same elements, the same verdicts, losses within 1e-5."""

import json
from pathlib import Path

import pytest

from axformer.config import make_config
from axformer.data.columns import DataSource
from axformer.plan.trial import Trial
from tests.forked import forked_interpreter
from tests.runs import open_run
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_rows, write_rows

ORACLE = Path(__file__).parents[3] / "shared" / "oracle" / "naive_axformer.py"

pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.skipif(not ORACLE.is_file(), reason="the naive reference is not beside the project"),
]


@pytest.mark.parametrize("preset", ["paper", "published"])
@pytest.mark.parametrize(("seed", "pairs", "labels", "top_k"), [(1, False, 2, 30), (2, True, 3, 4), (3, True, 2, 6)])
def test_the_pass_decides_as_the_reference(
    tmp_path: Path, preset: str, seed: int, pairs: bool, labels: int, top_k: int
) -> None:
    checkpoint = save_tiny_checkpoint(tmp_path / "checkpoint", tiny_config(labels=labels), seed)
    data = write_rows(tmp_path / "data.jsonl", tiny_rows(41, pairs=pairs, labels=labels, seed=seed))
    expected = tmp_path / "expected.jsonl"
    knobs = ("--preset", preset, "--top-k", str(top_k))
    ran = forked_interpreter(["-I", str(ORACLE), str(checkpoint), str(data), "--out", str(expected), *knobs])
    assert ran.returncode == 0, ran.stderr
    reference = [json.loads(line) for line in expected.read_text().splitlines()]

    def trials_with(**knobs: object) -> list[Trial]:
        config = make_config(preset, {"attention_top_k": top_k, **knobs})
        return list(open_run(checkpoint, DataSource(str(data)), config=config).trials())

    trials = trials_with(early_decision=False)
    assert [(one.element, one.verdict) for one in trials_with()] == [(one.element, one.verdict) for one in trials]
    assert [trial.element for trial in trials] == [trial["element"] for trial in reference]
    assert [trial.verdict for trial in trials] == [trial["verdict"] for trial in reference]
    assert [trial.loss for trial in trials] == pytest.approx([trial["loss"] for trial in reference], rel=1e-5)
    assert [trial.phase for trial in trials] == [trial["phase"] for trial in reference]
    assert len({trial.verdict for trial in trials}) >= 3, "a reference without acceptances proves little"

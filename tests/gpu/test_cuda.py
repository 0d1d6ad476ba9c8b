"""The pass on a CUDA device decides as on the CPU, and its result loads on the CPU."""

from pathlib import Path

import pytest
import torch

import axformer
from axformer.config import make_config
from axformer.data.columns import DataSource
from tests.runs import open_run
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here"),
]


def test_cuda_decides_as_the_cpu(tmp_path: Path) -> None:
    checkpoint = save_tiny_checkpoint(tmp_path / "checkpoint")
    data = DataSource(str(write_rows(tmp_path / "data.jsonl", tiny_rows(40))))
    config = make_config("paper", {"attention_top_k": 3, "majority_fraction": 0.2, "early_decision": False})
    runs = {name: open_run(checkpoint, data, config=config, device=name) for name in ("cpu", "cuda")}
    traces = {name: list(run.trials()) for name, run in runs.items()}
    decisions = {name: [(trial.element, trial.verdict) for trial in trace] for name, trace in traces.items()}
    assert decisions["cuda"] == decisions["cpu"]
    assert [trial.loss for trial in traces["cuda"]] == pytest.approx([trial.loss for trial in traces["cpu"]], rel=1e-4)
    runs["cuda"].publish(tmp_path / "pruned")
    assert axformer.load(tmp_path / "pruned").device.type == "cpu"

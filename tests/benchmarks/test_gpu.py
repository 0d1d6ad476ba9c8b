"""The script for a GPU, rehearsed on the CPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows


@pytest.mark.slow
def test_a_rehearsal_measures_a_pass(tmp_path: Path) -> None:
    checkpoint = save_tiny_checkpoint(tmp_path / "checkpoint")
    (tmp_path / "rows").mkdir()
    for seed, name in enumerate(("validation", "more", "test", "train", "texts")):
        write_rows(tmp_path / "rows" / f"{name}.jsonl", tiny_rows(40, seed=seed))
    places = ["--checkpoint", str(checkpoint), "--rows", str(tmp_path / "rows"), "--output", str(tmp_path / "gpu.json")]
    command = [sys.executable, "-m", "benchmarks.gpu", "--rehearse", *places, "--parts", "pass on cpu"]
    subprocess.run(command, check=True, timeout=300)
    found = json.loads((tmp_path / "gpu.json").read_text())["pass on cpu"]
    assert found["decisions"][0] == [None, "base"]
    assert found["device_peak_bytes"] is None
    assert found["estimate"]["least_host"] > 0

"""What a pass needs at the least, as arithmetic and as measured."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.config import PassConfig, RunConfig, make_config
from axformer.config.layers import LayersConfig, Schedule
from axformer.errors import CheckpointError
from axformer.intake.footprint import PROCESS_BYTES, Sizes, Work, at_ease, least
from axformer.intake.sizes import read_sizes
from axformer.plan.elements import Dimensions
from axformer.wire.finetuning import FinetuneSettings
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_model, tiny_rows, write_rows

SIZES = st.builds(
    Sizes,
    parameters=st.integers(1000, 10**10),
    layer_parameters=st.integers(0, 1000),
    dimensions=st.builds(
        Dimensions,
        layers=st.integers(1, 80),
        heads=st.integers(1, 64),
        hidden_size=st.integers(8, 8192),
        intermediate_size=st.integers(8, 32768),
    ),
    outputs_per_token=st.integers(0, 200_000),
)
BYTES = st.integers(0, 10**10)
KNOBS = st.sampled_from(
    [
        *({}, {"precision": "guarded"}, {"evaluate_in": "int8"}, {"batch_tokens": 64}, {"cache_budget": 0}),
        *({"method": "compress"}, {"method": "compress", "repair": "none"}, {"method": "compress", "polish": 1}),
        *({"method": "rank"}, {"order": "importance"}),
    ]
)


@given(sizes=SIZES, data=BYTES, knobs=KNOBS, on_gpu=st.booleans(), more=st.integers(0, 10**9))
def test_more_of_anything_never_needs_less(
    sizes: Sizes, data: int, knobs: dict[str, object], on_gpu: bool, more: int
) -> None:
    work = Work(make_config("paper", knobs))
    need = least(sizes, data, work, 512, on_gpu=on_gpu)
    larger = [
        least(replace(sizes, parameters=sizes.parameters + more), data, work, 512, on_gpu=on_gpu),
        least(replace(sizes, outputs_per_token=sizes.outputs_per_token + more), data, work, 512, on_gpu=on_gpu),
        least(sizes, data + more, work, 512, on_gpu=on_gpu),
        least(sizes, data, work, 512 + more, on_gpu=on_gpu),
        least(sizes, data, replace(work, training=FinetuneSettings()), 512, on_gpu=on_gpu),
        least(sizes, data, replace(work, takes_gradients=True), 512, on_gpu=on_gpu),
        at_ease(sizes, data, work, 512, on_gpu=on_gpu),
    ]
    assert all(one.host_bytes >= need.host_bytes and one.device_bytes >= need.device_bytes for one in larger)
    assert need.host_bytes >= PROCESS_BYTES + 4 * sizes.parameters
    assert (need.device_bytes >= 4 * sizes.parameters) if on_gpu else (need.device_bytes == 0)


def test_the_cache_is_no_larger_than_its_budget() -> None:
    sizes = Sizes(1000, 500, Dimensions(12, 12, 768, 3072), 0)
    budgets = [at_ease(sizes, 10**9, Work(PassConfig(cache_budget=budget)), 512, on_gpu=False) for budget in (0, 10**6)]
    assert budgets[1].host_bytes - budgets[0].host_bytes == 10**6


def test_a_training_needs_gradients_and_moments_of_what_it_trains() -> None:
    sizes = Sizes(2_000_000_000, 1_200_000_000, Dimensions(12, 12, 768, 3072), 0)

    def needed(config: RunConfig = PassConfig(), *, has_new_head: bool = False, **settings: object) -> int:  # noqa: B008
        work = Work(config, FinetuneSettings.model_validate(settings), has_new_head=has_new_head)
        return least(sizes, 0, work, 512, on_gpu=False).host_bytes - PROCESS_BYTES

    half, gradual = LayersConfig(drop=6), LayersConfig(drop=6, schedule=Schedule.GRADUAL)
    assert needed() == 4 * (2 * 2_000_000_000 + 3 * 2_000_000_000)
    assert needed() - needed(freeze="lower:4") == 4 * 3 * 400_000_000
    assert needed() - needed(freeze_embeddings=True) == 4 * 3 * 800_000_000
    assert needed() - needed(half) == 4 * 4 * 600_000_000
    assert needed(half) - needed(half, freeze="lower:6") == 4 * 3 * 600_000_000
    assert needed(gradual) == needed(half, has_new_head=True) == needed(LayersConfig()) == needed()


def test_sizes_are_those_of_the_loaded_model(tmp_path: Path) -> None:
    sizes = read_sizes(save_tiny_checkpoint(tmp_path))
    model = tiny_model()
    assert sizes.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert sizes.layer_parameters == sum(p.numel() for p in model.bert.encoder.layer.parameters())
    assert sizes.dimensions == Dimensions(layers=3, heads=4, hidden_size=32, intermediate_size=48)
    assert sizes.outputs_per_token == 0


def test_damaged_weights_are_refused_before_they_are_loaded(tmp_path: Path) -> None:
    save_tiny_checkpoint(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(CheckpointError, match="copy it again"):
        read_sizes(tmp_path)


PASS = """
import json, sys
from pathlib import Path
from axformer.config import make_config
from axformer.intake.dataset import DataSource
from axformer.run import PruningRun

def held(name):
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) * 1024

checkpoint, data, output, knobs = sys.argv[1:]
def prune(checkpoint, output):
    run = PruningRun.open(checkpoint, DataSource(data), config=make_config("paper", json.loads(knobs)))
    for _ in run.trials():
        pass
    run.publish(Path(output))

prune(checkpoint.replace("large", "small"), output + "-small")  # what is imported on the way is not what is measured
before = held("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # forget the peak
prune(checkpoint, output)
print(held("VmHWM") - before)
"""
SLACK_BYTES = 64 * 2**20
"""What threads, allocators and libraries take besides, which differs between machines."""
FEW_TRIALS = {"refine_margin": 1.0, "hard_attention": False, "cache_budget": 0}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("layers", "inner"), [(6, 2048), (2, 512)], ids=["60 MB", "7 MB"])
def test_the_least_is_close_to_what_a_pass_takes(tmp_path: Path, layers: int, inner: int) -> None:
    save_tiny_checkpoint(tmp_path / "small")
    config = tiny_config(layers=layers, heads=4, hidden=512 if layers > 2 else 256, inner=inner)
    checkpoint = save_tiny_checkpoint(tmp_path / "large", config)
    data = write_rows(tmp_path / "rows.jsonl", tiny_rows(60))
    command = [sys.executable, "-c", PASS, str(checkpoint), str(data), str(tmp_path / "output"), json.dumps(FEW_TRIALS)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    need = least(read_sizes(checkpoint), data.stat().st_size, Work(make_config("paper", FEW_TRIALS)), 512, on_gpu=False)
    estimate, measured = need.host_bytes - PROCESS_BYTES, int(done.stdout)
    assert estimate <= measured <= 2.5 * estimate + SLACK_BYTES, (estimate / 1e6, measured / 1e6)

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
from axformer.data.encoding import without_labels
from axformer.devices import batch_tokens_in
from axformer.errors import CheckpointError
from axformer.intake.dataset import needed_to_calibrate
from axformer.intake.footprint import PROCESS_BYTES, DataSizes, RunWork, Sizes, at_ease, largest_part, least, smallest
from axformer.intake.sizes import read_data_sizes, read_sizes
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
        *({}, {"batch_tokens": 64}, {"cache_budget": 0}),
        *({"method": "compress"}, {"method": "compress", "repair": "none"}, {"method": "compress", "polish": 1}),
        *({"method": "rank"}, {"order": "importance"}),
    ]
)


@given(sizes=SIZES, size=BYTES, knobs=KNOBS, less=st.floats(0, 1, exclude_max=True))
def test_the_smallest_gpu_that_a_job_fits_is_found(
    sizes: Sizes, size: int, knobs: dict[str, object], less: float
) -> None:
    work, data = RunWork(make_config("paper", knobs)), DataSizes({"validation": size}, size // 5)

    def need_of(memory: int) -> int:
        return least(sizes, data, work, batch_tokens_in(memory), on_gpu=True).device_bytes

    found = smallest(need_of)
    assert need_of(found) <= found
    assert need_of(int(found * less)) > int(found * less)


@given(sizes=SIZES, size=BYTES, knobs=KNOBS, on_gpu=st.booleans(), more=st.integers(0, 10**9))
def test_more_of_anything_never_needs_less(
    sizes: Sizes, size: int, knobs: dict[str, object], on_gpu: bool, more: int
) -> None:
    work, data = RunWork(make_config("paper", knobs)), DataSizes({"validation": size}, size // 5)
    need = least(sizes, data, work, 512, on_gpu=on_gpu)
    larger = [
        least(replace(sizes, parameters=sizes.parameters + more), data, work, 512, on_gpu=on_gpu),
        least(replace(sizes, outputs_per_token=sizes.outputs_per_token + more), data, work, 512, on_gpu=on_gpu),
        least(sizes, replace(data, bytes={**data.bytes, "test": more}), work, 512, on_gpu=on_gpu),
        least(sizes, replace(data, fitted_tokens=data.fitted_tokens + more), work, 512, on_gpu=on_gpu),
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
    budgets = [
        at_ease(sizes, DataSizes({"validation": 10**9}, 0), RunWork(PassConfig(cache_budget=budget)), 512, on_gpu=False)
        for budget in (0, 10**6)
    ]
    assert budgets[1].host_bytes - budgets[0].host_bytes == 10**6


def test_a_training_needs_gradients_and_moments_of_what_it_trains() -> None:
    sizes = Sizes(2_000_000_000, 1_200_000_000, Dimensions(12, 12, 768, 3072), 0)

    def needed(config: RunConfig = PassConfig(), *, has_new_head: bool = False, **settings: object) -> int:  # noqa: B008
        work = RunWork(config, FinetuneSettings.model_validate(settings), has_new_head=has_new_head)
        return least(sizes, DataSizes({}, 0), work, 512, on_gpu=False).host_bytes - PROCESS_BYTES

    half, gradual = LayersConfig(drop=6), LayersConfig(drop=6, schedule=Schedule.GRADUAL)
    assert needed() == 4 * (2 * 2_000_000_000 + 3 * 2_000_000_000)
    assert needed() - needed(freeze="0,1,2,3") == 4 * 3 * 400_000_000
    assert needed() - needed(freeze="lower:4") == 4 * 3 * 1_200_000_000
    assert needed() - needed(freeze_embeddings=True) == 4 * 3 * 800_000_000
    assert needed() - needed(half) == 4 * 4 * 600_000_000
    assert needed(half) - needed(half, freeze="0,1,2,3,4,5") == 4 * 3 * 600_000_000
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


BERT = Sizes(109_483_778, 85_054_464, Dimensions(12, 12, 768, 3072), 0)


def rows_of_words(path: Path, size: int, words: int) -> list[int]:
    """Write a file of about so many bytes, and return the tokens of each row."""
    line = json.dumps({"text": " ".join(["word"] * words), "label": 0}) + "\n"
    count = max(1, size // len(line))
    with path.open("w") as file:
        for start in range(0, count, 1000):
            file.write(line * min(1000, count - start))
    return [words + 2] * count


@pytest.mark.parametrize(
    ("size", "words"),
    [(1_000, 8), (30_000, 60), (1_000_000, 8), (1_000_000, 400), (10_000_000, 60), (100_000_000, 400)],
)
@pytest.mark.parametrize("part", ["validation", "calibrate"])
def test_what_is_fitted_is_estimated_as_it_is_drawn(tmp_path: Path, size: int, words: int, part: str) -> None:
    config = make_config("smallest", {"confirm": 0.4})
    lengths = rows_of_words(tmp_path / "data.jsonl", size, words)
    files = {"validation": tmp_path / "data.jsonl", part: tmp_path / "data.jsonl"}
    if part == "validation":
        lengths = lengths[: len(lengths) - int(0.4 * len(lengths))]
    ids = [range(place, place + length) for place, length in enumerate(lengths)]
    drawn = sum(lengths[row] for row in needed_to_calibrate(without_labels({"input_ids": ids}), 3072, config))
    estimate = read_data_sizes(files, config, 3072).fitted_tokens
    assert drawn / 2 <= estimate <= 2 * drawn + 512


def test_rows_that_are_not_fitted_take_no_more_than_their_texts(tmp_path: Path) -> None:
    """A compression of BERT-base on 1,000 rows, with 23 MB more of any kind."""
    config, work = make_config("smallest"), RunWork(make_config("smallest"))
    rows_of_words(tmp_path / "validation", 64_000, 8)
    rows_of_words(tmp_path / "more", 23_000_000, 8)

    def needed(*more: str) -> tuple[float, str]:
        files = {"validation": tmp_path / "validation", **dict.fromkeys(more, tmp_path / "more")}
        data = read_data_sizes(files, config, 3072)
        need = least(BERT, data, work, 1024, on_gpu=False)
        return need.host_bytes / 1e9, largest_part(BERT, data, work, 1024, on_gpu=False)

    alone, _ = needed()
    assert alone < 2.5
    for part in ("test", "train", "calibrate"):
        assert needed(part)[0] < alone + 1.0
    many = replace(read_data_sizes({"validation": tmp_path / "more"}, config, 3072), bytes={"test": 10**10})
    assert largest_part(BERT, many, work, 1024, on_gpu=False) == "test"
    assert largest_part(BERT, DataSizes({"calibrate": 1}, 10**8), work, 1024, on_gpu=False) == "calibrate"
    assert needed()[1] == "checkpoint"


def test_a_list_on_one_line_has_as_many_rows_as_objects(tmp_path: Path) -> None:
    config, rows = make_config("smallest", {"confirm": 0.0, "within_points": None}), tiny_rows(3000)
    (tmp_path / "lines").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "list").write_text(json.dumps(rows))
    lines, listed = (
        read_data_sizes({"validation": tmp_path / name}, config, 8).fitted_tokens for name in ("lines", "list")
    )
    assert listed == pytest.approx(lines, rel=0.1)


PASSES = """
import json, sys
from pathlib import Path
from axformer.config import make_config
from axformer.forms import interpreter
from axformer.data.columns import DataSource
from axformer.reporting import measure, speed
from tests.runs import open_run
from tests import forked

def held(name):
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) * 1024

def prune(name):
    run = open_run(home / name, DataSource(data), config=make_config("paper", json.loads(knobs)))
    for _ in run.trials():
        pass
    run.publish(home / "output" / name)

home, data, knobs, *names = Path(sys.argv[1]), *sys.argv[2:]
forked.start()
interpreter.launch = forked.ForkedInterpreter
measure.QUICK = measure.HEADLINE = speed.Effort(least=2, most=2, seconds=1.0, warm_ups=1)
prune("first")  # what is imported on the way is not what is measured
for name in names:
    before = held("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak
    prune(name)
    print(held("VmHWM") - before)
"""
SLACK_BYTES = 64 * 2**20
"""What threads, allocators and libraries take besides, which differs between machines."""
FEW_TRIALS = {"refine_margin": 1.0, "attention_top_k": None, "cache_budget": 0}
MODELS = {
    "7 MB": tiny_config(layers=2, hidden=256, inner=512),
    "60 MB": tiny_config(layers=6, hidden=512, inner=2048),
}
"""The smaller one first, so that it finds no memory that the larger one has left."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoints, each in the directory of its name, and the data."""
    home = tmp_path_factory.mktemp("home")
    for name, config in {"first": None, **MODELS}.items():
        save_tiny_checkpoint(home / name, config)
    write_rows(home / "rows.jsonl", tiny_rows(20))
    return home


@pytest.fixture(scope="module")
def measured(home: Path) -> dict[str, int]:
    """The bytes that a pass over each model took, one after the other in a process of their own."""
    command = [sys.executable, "-c", PASSES, str(home), str(home / "rows.jsonl"), json.dumps(FEW_TRIALS), *MODELS]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(zip(MODELS, map(int, done.stdout.split()), strict=True))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", MODELS)
def test_the_least_is_close_to_what_a_pass_takes(name: str, home: Path, measured: dict[str, int]) -> None:
    work, data = RunWork(make_config("paper", FEW_TRIALS)), (home / "rows.jsonl").stat().st_size
    need = least(read_sizes(home / name), DataSizes({"validation": data}, 0), work, 512, on_gpu=False)
    estimate = need.host_bytes - PROCESS_BYTES
    assert estimate <= measured[name] <= 2.5 * estimate + SLACK_BYTES, (estimate / 1e6, measured[name] / 1e6)

"""The map of the largest model that is let in costs the service little."""

import tracemalloc

from api.pages.model_map import map_of
from axformer.intake.limits import DIMENSIONS
from store.repositories.trace_views import Point

LARGEST = {
    "layers": DIMENSIONS["num_hidden_layers"],
    "heads": DIMENSIONS["num_attention_heads"],
    "hidden_size": DIMENSIONS["hidden_size"],
    "intermediate_size": DIMENSIONS["intermediate_size"],
}
MOST_BYTES = 32 * 2**20


def test_the_map_of_the_largest_model_takes_some_megabytes() -> None:
    tracemalloc.start()
    try:
        shown = map_of(LARGEST, list[Point](), is_whole=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(row.heads) for row in shown.rows) == LARGEST["layers"] * LARGEST["heads"]
    assert peak < MOST_BYTES


def test_its_page_is_as_modest(member, stage):
    job_id = stage.running(
        [],
        {"done": 0, "known": 1, "seconds": 0.0, "seconds_left": None, "base_loss": 1.0}
        | {"min_loss": 1.0, "dimensions": LARGEST},
    )
    answer = member.get(f"/jobs/{job_id}")
    assert answer.status_code == 200
    assert len(answer.content) < MOST_BYTES

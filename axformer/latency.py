"""How long models take for one input, measured pairwise in one run so that the ratio means something."""

import statistics
import time
from collections.abc import Sequence
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict

WARM_UPS = 5
REPEATS = 40
BATCH = 1


class LatencySetting(BaseModel):
    """What was measured: the median over ``repeats`` forward passes of ``batch`` inputs of ``tokens`` tokens."""

    model_config = ConfigDict(frozen=True)

    batch: int
    tokens: int
    repeats: int


def measure_latency(models: Sequence[Any], tokens: int) -> tuple[list[float], LatencySetting]:
    """The median latency of each model in milliseconds.

    The models take turns, so that whatever else the machine does falls on all of them alike.

    Args:
        models: on one device.
        tokens: length of the input.
    """
    device = models[0].device
    vocabulary = models[0].config.vocab_size
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(vocabulary, (BATCH, tokens), generator=generator).to(device)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    times: list[list[float]] = [[] for _ in models]
    with torch.inference_mode():
        for repeat in range(WARM_UPS + REPEATS):
            for model, taken in zip(models, times, strict=True):
                seconds = _seconds(model, inputs)
                if repeat >= WARM_UPS:
                    taken.append(seconds)
    medians = [1000 * statistics.median(taken) for taken in times]
    return medians, LatencySetting(batch=BATCH, tokens=tokens, repeats=REPEATS)


def _seconds(model: Any, inputs: dict[str, torch.Tensor]) -> float:
    _wait(model)
    start = time.perf_counter()
    model(**inputs)
    _wait(model)
    return time.perf_counter() - start


def _wait(model: Any) -> None:
    if model.device.type != "cpu":
        torch.accelerator.synchronize(model.device)

"""How long models take for one input, measured pairwise in one run so that the ratio means something."""

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict

WARM_UPS = 5
REPEATS = 40


class LatencySetting(BaseModel):
    """What was measured: the median over ``repeats`` forward passes of ``batch`` inputs of ``tokens`` tokens."""

    model_config = ConfigDict(frozen=True)

    batch: int
    tokens: int
    repeats: int


def measure_latency(models: Sequence[Any], inputs: Mapping[str, torch.Tensor]) -> tuple[list[float], LatencySetting]:
    """The median latency of each model in milliseconds.

    The models take turns, so that whatever else the machine does falls on all of them alike.

    Args:
        models: on one device.
        inputs: what they take, on that device, of shape (batch, tokens) or (batch, choices, tokens).
    """
    times: list[list[float]] = [[] for _ in models]
    with torch.inference_mode():
        for repeat in range(WARM_UPS + REPEATS):
            for model, taken in zip(models, times, strict=True):
                seconds = _seconds(model, inputs)
                if repeat >= WARM_UPS:
                    taken.append(seconds)
    medians = [1000 * statistics.median(taken) for taken in times]
    batch, *_, tokens = inputs["input_ids"].shape
    return medians, LatencySetting(batch=batch, tokens=tokens, repeats=REPEATS)


def _seconds(model: Any, inputs: Mapping[str, torch.Tensor]) -> float:
    _wait(model)
    start = time.perf_counter()
    model(**inputs)
    _wait(model)
    return time.perf_counter() - start


def _wait(model: Any) -> None:
    if model.device.type != "cpu":
        torch.accelerator.synchronize(model.device)

"""The pass that is disturbed, and what comes of it when nobody does."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from axformer.config import make_config
from axformer.data.columns import DataSource
from tests.faults.service import WORKER_THREADS, Service
from tests.runs import open_run
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows

PRESET = "paper"
KNOBS = {"neuron_group_size": 1, "refine_margin": 100.0, "accept_poor_model": True}
"""Makes some hundred trials of a tiny model, which guesses, so that there is a middle to interrupt."""
ROWS = 300
COMPARED = ("plan.json", "model/model.safetensors", "model/config.json")


@dataclass(frozen=True)
class Outcome:
    """All of a pass that must not depend on what happened meanwhile."""

    trace: tuple[dict[str, Any], ...]
    """Without seconds."""
    files: dict[str, str]
    """SHA-256 of plan and model."""


def write_inputs(directory: Path) -> dict[str, Any]:
    """Make the checkpoint and the data, and give the job that names them."""
    save_tiny_checkpoint(directory / "checkpoint")
    write_rows(directory / "validation.jsonl", tiny_rows(ROWS))
    return {
        "name": "disturbed",
        "checkpoint": {"uri": f"file://{directory / 'checkpoint'}"},
        "validation": {"uri": f"file://{directory / 'validation.jsonl'}"},
        "preset": PRESET,
        "config": KNOBS,
        "forms": ["compact"],
    }


def undisturbed(directory: Path) -> Outcome:
    """The outcome of the library alone, in this process, on as many cores as the workers compute with.

    With more, batches come in pairs, and a trial may have seen one more of them when it is decided.
    """
    cores = torch.get_num_threads()
    torch.set_num_threads(WORKER_THREADS)
    try:
        return _undisturbed(directory)
    finally:
        torch.set_num_threads(cores)


def _undisturbed(directory: Path) -> Outcome:
    run = open_run(
        directory / "checkpoint",
        DataSource(str(directory / "validation.jsonl")),
        config=make_config(PRESET, KNOBS),
    )
    trials = [trial.model_dump(mode="json", exclude={"seconds"}) for trial in run.trials()]
    run.publish(directory / "undisturbed")
    files = {name: (directory / "undisturbed" / name).read_bytes() for name in COMPARED}
    return Outcome(tuple(trials), {name: hashlib.sha256(content).hexdigest() for name, content in files.items()})


def outcome_of(service: Service, job_id: str) -> Outcome:
    """The outcome of a job, as its owner gets it."""
    answer = service.client.get(f"/v1/jobs/{job_id}/trace", headers={"Accept": "application/x-ndjson"})
    assert answer.status_code == 200, answer.text
    trials = [json.loads(line) for line in answer.text.splitlines()]
    contents = {name: service.client.get(f"/v1/jobs/{job_id}/artifacts/{name}").content for name in COMPARED}
    return Outcome(
        tuple({name: value for name, value in trial.items() if name != "seconds"} for trial in trials),
        {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
    )

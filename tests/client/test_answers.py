"""The client's shapes are the service's, and outlive it."""

import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel

from api.schemas import artifacts, events, jobs, queue, uploads
from api.schemas.examples import EXAMPLES
from axformer.client import answers

SHAPES: list[tuple[type[BaseModel], type[BaseModel]]] = [
    (answers.Job, jobs.JobRead),
    (answers.JobFailure, jobs.JobErrorRead),
    (answers.JobProgress, jobs.ProgressRead),
    (answers.JobPass, jobs.PassRead),
    (answers.JobReport, jobs.ReportRead),
    (answers.Place, queue.PlaceRead),
    (answers.QueuedJob, queue.QueuedJobRead),
    (answers.Queue, queue.QueueRead),
    (answers.Event, events.EventRead),
    (answers.Artifact, artifacts.ArtifactRead),
    (answers.Upload, uploads.UploadRead),
]


@pytest.mark.parametrize(("read", "sent"), SHAPES, ids=lambda shape: shape.__name__)
def test_the_service_sends_what_the_client_reads(read: type[BaseModel], sent: type[BaseModel]) -> None:
    assert set(read.model_fields) <= set(sent.model_fields)


def with_more(value: Any) -> Any:
    """The value, to each object of which a newer service has added a field."""
    if isinstance(value, dict):
        return {key: with_more(item) for key, item in value.items()} | {"added_later": [1]}
    return [with_more(item) for item in value] if isinstance(value, list) else value


def test_fields_and_states_of_a_newer_service_are_no_trouble() -> None:
    job = answers.Job.model_validate({**with_more(EXAMPLES["job"]), "labels": {}, "state": "meditating"})
    assert (job.state, job.has_ended) == ("meditating", False)
    assert job.progress is not None
    assert answers.Page[answers.Event, int].model_validate(with_more(EXAMPLES["events"])).data[0].seq == 2
    for name, shape in (("queue", answers.Queue), ("upload", answers.Upload), ("artifacts", answers.ArtifactList)):
        example = EXAMPLES[name] if name == "queue" else with_more(EXAMPLES[name])
        shape.model_validate(example)


def test_the_client_needs_no_model_library() -> None:
    code = "import sys, axformer.client; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not loaded & {"torch", "transformers", "safetensors", "pyarrow", "numpy", "api", "store"}

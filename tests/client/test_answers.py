"""What a client makes of a service that is newer than itself."""

import json
import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from api.openapi import EXAMPLES
from axformer.client import answers
from axformer.wire.base import read_answer


def with_more(value: Any) -> Any:
    """The value, to each object of which a newer service has added a field."""
    if isinstance(value, dict):
        return {key: with_more(item) for key, item in value.items()} | {"added_later": [1]}
    return [with_more(item) for item in value] if isinstance(value, list) else value


LATER = "meditating"
"""A word that came later."""


def newer_job() -> dict[str, Any]:
    """A job of a newer service: with more fields, and in words that came later."""
    job = {**with_more(EXAMPLES["job"]), "labels": {}, "state": LATER, "device": LATER}
    return job | {"webhook": job["webhook"] | {"events": ["job.failed", LATER]}}


def test_fields_and_words_of_a_newer_service_are_no_trouble() -> None:
    job = read_answer(answers.Job, json.dumps(newer_job()))
    assert (job.state, job.device, job.has_ended) == (LATER, LATER, False)
    assert job.webhook is not None
    assert job.webhook.events == ["job.failed", LATER]
    assert json.loads(job.model_dump_json())["state"] == LATER
    queue = {**EXAMPLES["queue"], "counts": {LATER: 2, "queued": 1}}
    queue["data"] = [with_more(one) | {"state": LATER, "waits_for": LATER} for one in queue["data"]]
    looked = read_answer(answers.Queue, json.dumps(queue))
    assert (looked.counts[LATER], looked.data[0].waits_for, looked.data[1].ahead[0].team) == (2, LATER, "crew")
    key = EXAMPLES["me"]["key"] | {"scopes": ["read", LATER]}
    assert read_answer(answers.Key, json.dumps(key)).scopes == ["read", LATER]
    events = read_answer(answers.Page[answers.Event, int], json.dumps(with_more(EXAMPLES["events"])))
    assert events.data[0].seq == 1
    for name, shape in (("upload", answers.Upload), ("artifacts", answers.ArtifactList)):
        read_answer(shape, json.dumps(with_more(EXAMPLES[name])))


def test_words_are_text_for_a_client() -> None:
    assert type(read_answer(answers.Job, json.dumps(EXAMPLES["job"])).state) is str


def test_the_service_sends_no_words_and_fields_that_it_does_not_describe() -> None:
    with pytest.raises(ValidationError) as caught:
        answers.Job.model_validate_json(json.dumps(newer_job()))
    wrong = {error["loc"] for error in caught.value.errors()}
    assert {("state",), ("device",), ("webhook", "events", 1), ("added_later",)} <= wrong


def test_the_client_needs_no_model_library() -> None:
    code = "import sys, axformer.client; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not loaded & {"torch", "transformers", "safetensors", "pyarrow", "numpy", "api", "store"}

import errno
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from axformer.errors import ArtifactError, CheckpointError, DataError, InputError
from worker.fetching.errors import ReferenceMissing, SourceTooSlow, SourceUnavailable
from worker.job.failure import RefusedInputError, failure_of, with_original_uris
from worker.job.inputs import InputsChangedError, JobInputs
from worker.sandbox.errors import ProcessMisbehavedError, WorkFailedError
from worker.sandbox.work import reason_of


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (ArtifactError("the logits differ"), "artifact_check_failed", False),
        (ReferenceMissing("nothing there"), "reference_not_found", False),
        (SourceUnavailable("no answer"), "source_unavailable", True),
        (SourceTooSlow("dripping"), "source_too_slow", True),
        (InputsChangedError("other data"), "inputs_changed", True),
        (OSError(errno.ENOSPC, "No space left on device"), "disk_full", True),
        (OSError(errno.EDQUOT, "Quota exceeded"), "disk_full", True),
        (WorkFailedError("disk_full", "canary"), "disk_full", True),
        (MemoryError(), "out_of_memory", False),
        (WorkFailedError("out_of_memory", "canary"), "out_of_memory", False),
        (WorkFailedError("unforeseen", "canary"), "internal_error", True),
        (ProcessMisbehavedError("canary"), "unsafe_input", False),
        (OSError(errno.EIO, "Input/output error"), "internal_error", True),
        (RuntimeError("some bug"), "internal_error", True),
    ],
)
def test_errors_have_codes(error: Exception, code: str, retryable: bool) -> None:
    failure = failure_of(error)
    assert (failure.code, failure.retryable) == (code, retryable)
    assert failure.message
    assert "canary" not in failure.message


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk_full"),
        (SafetensorError("I/O error: No space left on device (os error 28)"), "disk_full"),
        (SafetensorError("I/O error: Input/output error (os error 5)"), "unforeseen"),
        (MemoryError(), "out_of_memory"),
        (torch.OutOfMemoryError("CUDA out of memory"), "out_of_memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "out_of_memory"),
        (RuntimeError("some bug"), "unforeseen"),
    ],
)
def test_errors_of_the_libraries_have_reasons(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason


def test_what_an_unforeseen_error_says_is_not_told() -> None:
    failure = failure_of(KeyError("postgresql://user:canary@db/axformer"))
    assert "canary" not in failure.message


INPUTS = JobInputs(
    paths={
        "checkpoint": Path("/work/inputs/checkpoint"),
        "validation": Path("/work/inputs/validation.csv"),
        "test": Path("/work/inputs/test.jsonl"),
        "calibrate": Path("/work/inputs/calibrate.jsonl"),
    },
    digests={},
    names={
        "checkpoint": "hf://acme/bert",
        "validation": "semi.csv",
        "test": "s3://acme/test.jsonl",
        "calibrate": "s3://acme/texts.jsonl",
    },
)


@pytest.mark.parametrize(
    ("error", "message", "part"),
    [
        (
            DataError(
                "'/work/inputs/validation.csv' has no column 'text'; name the columns, for example --columns text=review"
            ),
            "'semi.csv' has no column 'text'; name the columns, for example columns text=review",
            "validation",
        ),
        (DataError("'/work/inputs/test.jsonl' holds no rows"), "'s3://acme/test.jsonl' holds no rows", "test"),
        (
            DataError("'/work/inputs/calibrate.jsonl' has no column 'text'; give --calibrate other rows"),
            "'s3://acme/texts.jsonl' has no column 'text'; give calibrate other rows",
            "calibrate",
        ),
        (
            CheckpointError("'/work/inputs/checkpoint/config.json' is not JSON; run convert.py --safe_weights --data"),
            "'hf://acme/bert/config.json' is not JSON; run convert.py --safe_weights validation",
            "checkpoint",
        ),
        (
            DataError("line 3 holds '--data', not a label; give --test other rows, or --train-more"),
            "line 3 holds '--data', not a label; give test other rows, or --train-more",
            "validation",
        ),
    ],
)
def test_what_the_library_refuses_is_told_in_the_owners_words(error: InputError, message: str, part: str) -> None:
    """By the owner's own names of files, and by the fields of a job, which have no dashes as options of a command have."""
    with pytest.raises(RefusedInputError) as caught, with_original_uris(INPUTS):
        raise error
    assert (caught.value.failure.message, caught.value.failure.param) == (message, part)

"""What a command says when its work fails for a reason that its user can do something about."""

import pytest
import torch
import typer

from axformer.cli.failing import EXIT_FAILED, failing


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 58.00 MiB.\nGPU 0 has more to say"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: 8 bytes"),
        MemoryError(),
    ],
    ids=["gpu", "cpu", "python"],
)
def test_out_of_memory_says_what_to_lower(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, failing():
        raise error
    said = capsys.readouterr().err
    assert ended.value.exit_code == EXIT_FAILED
    assert said.startswith("failed: not enough memory: ")
    assert "batch_tokens" in said
    assert "more to say" not in said


def test_other_errors_of_a_library_are_not_hidden() -> None:
    with pytest.raises(RuntimeError, match="shapes"), failing():
        raise RuntimeError("shapes differ")

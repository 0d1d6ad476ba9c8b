"""A job in a confined process, as a worker runs it, on a CUDA device: the restrictions leave it the GPU and nothing else."""

from pathlib import Path

from pydantic import SecretStr

import axformer
from axformer.data.columns import DataSource
from axformer.wire.states import JobKind
from store.settings import Settings
from tests.gpu.test_cuda import DEVICE, NEEDS_DEVICE, PASS
from tests.runs import run_of
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows
from worker.sandbox.messages import Begin, GoAhead, JobOrder, MemoryEstimate, Opened, Published, TrialMade
from worker.sandbox.sandboxes import Sandboxes

pytestmark = NEEDS_DEVICE


def never() -> None:
    """Nobody stops the job."""


def test_a_confined_process_has_the_gpu(tmp_path: Path) -> None:
    root = tmp_path / "var"
    root.mkdir()
    settings = Settings(database_url=SecretStr("postgresql://nowhere/none"), var_dir=root)
    with Sandboxes(settings) as sandboxes:
        sandbox = sandboxes.take("job")
        try:
            assert sandbox.make_ready().auto == DEVICE
            checkpoint = save_tiny_checkpoint(sandbox.inputs / "checkpoint")
            rows = write_rows(sandbox.inputs / "data.jsonl", tiny_rows(40))
            order = JobOrder(
                kind=JobKind.PASS,
                run=run_of(sandbox.seen(checkpoint), DataSource(str(sandbox.seen(rows))), config=PASS),
                paths={"checkpoint": str(sandbox.seen(checkpoint)), "validation": str(sandbox.seen(rows))},
                analysis=None,
                device="auto",
                output=str(sandbox.seen(sandbox.made / "result")),
                state=str(sandbox.seen(sandbox.state)),
                names={},
            )
            sandbox.tell(order, never)
            estimate = sandbox.hear(MemoryEstimate, never)
            assert (estimate.total.device_bytes > 0) is (DEVICE == "cuda")
            sandbox.tell(GoAhead(), never)
            sandbox.hear(Opened, never)
            sandbox.tell(Begin(), never)
            trials = 0
            while isinstance(message := sandbox.hear_any(never), TrialMade):
                trials += 1
            assert trials > 1
            while not isinstance(message, Published):
                message = sandbox.hear_any(never)
            assert message.report["environment"]["device"]
            assert axformer.load(sandbox.made / "result").device.type == "cpu"
        finally:
            sandbox.close()

"""``make demo``: the main job end to end, over HTTP, on a real model and real data.

Fine-tunes the packaged MiniLM on packaged movie reviews (once), starts the service, posts the checkpoint, watches the
pass, downloads the smaller model, loads it and compares it with the old one. Everything it keeps is in ``var/``.
"""

import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console

from axformer.cli.characters import replace_unknown_characters
from axformer.cli.deploying import show_deployables
from axformer.cli.display import closing_table
from axformer.cli.quiet import silence_libraries
from axformer.cli.watch import show_job
from axformer.client import Client, Job, ServiceError
from axformer.config import Preset
from axformer.errors import AxFormerError
from benchmarks.demo_checkpoint import demo_checkpoint
from benchmarks.demo_data import CACHE, movie_reviews
from benchmarks.demo_result import check_loading, check_loss, held_out_verdict, read_report
from benchmarks.demo_stack import StackStartError, running_stack
from benchmarks.packages import PackageError
from benchmarks.rows import Row, read_rows

_SENTENCE = "A quiet, clever film that stays with you long after the lights come up."
_INTERRUPTED = 130  # what shells give for Ctrl-C


def demo(console: Console) -> None:
    """Do the whole job and say what came of it.

    Raises:
        PackageError, StackStartError, ServiceError, AxFormerError: a step went wrong; the message says which.
    """
    begun = time.monotonic()
    silence_libraries()
    console.rule("1  A checkpoint and its data")
    data = movie_reviews()
    console.print(", ".join(f"{name}: {len(read_rows(path, Row)):,} sentences" for name, path in data.items()))
    console.print("MiniLM, fine-tuned on them (the first time takes a minute or two):")
    checkpoint = demo_checkpoint(data["train"])
    console.print(f"{checkpoint}")
    console.rule("2  The service")
    with running_stack() as address:
        console.print(f"The service answers at {address.url}")
        with Client(address.url, address.api_key) as client, _posted(client, checkpoint, data) as job:
            console.rule(f"3  The pass: {job.id}")
            show_job(console, client, job.id)
            result = _fetch(client, job.id)
        console.rule("4  The smaller model")
        console.print(f"Downloaded to {result}; the trace over HTTP equals trace.jsonl, record by record")
    _try_out(console, result, data["validation"], job.config["max_length"])
    report = read_report(result)
    show_deployables(console, report)
    console.print(closing_table(report))
    console.print(held_out_verdict(report), style="bold")
    console.print(f"The pass took {report['seconds']:.0f} s, everything {time.monotonic() - begun:.0f} s.")


@contextmanager
def _posted(client: Client, checkpoint: Path, data: dict[str, Path]) -> Iterator[Job]:
    """Post the job; it is cancelled if the block ends with an error.

    Otherwise a demo that was interrupted would keep the worker from the next one.
    """
    job = client.submit(
        "demo: MiniLM on movie reviews",
        checkpoint=checkpoint,
        validation=data["validation"],
        test=data["test"],
        preset=Preset.PAPER,  # the default, robust, keeps all of this model
        forms=["compact"],
    )
    try:
        yield job
    except BaseException:
        with suppress(ServiceError):
            client.cancel(job.id)
        raise


def _fetch(client: Client, job_id: str) -> Path:
    """Download the result, and compare its trace with the one that the API has shown."""
    result = CACHE / "result"
    shutil.rmtree(result, ignore_errors=True)
    client.download(job_id, result)
    over_http = client.save_trace(job_id, CACHE / "trace.jsonl")
    if over_http.read_bytes() != (result / "trace.jsonl").read_bytes():
        raise ServiceError("the trace over HTTP is not the trace.jsonl of the result")
    return result


def _try_out(console: Console, result: Path, validation: Path, max_length: int) -> None:
    answer = check_loading(result, _SENTENCE)
    console.print(f"Loads by axformer.load and by transformers.pipeline: '{_SENTENCE}' is {answer['label']}")
    loss = check_loss(result, read_rows(validation, Row), max_length)
    console.print(f"Measured again here, outside of the service: validation loss {loss:.4f}, as reported")


def main() -> int:
    """The command; 0 when everything went well."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    replace_unknown_characters()
    console = Console(highlight=False, soft_wrap=True)
    try:
        demo(console)
    except KeyboardInterrupt:
        console.print("Interrupted; what was started is stopped.")
        return _INTERRUPTED
    except (PackageError, StackStartError, AxFormerError) as error:
        console.print(f"The demo failed: {error}", style="red", markup=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

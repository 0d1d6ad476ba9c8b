"""``make demo``: the main job end to end, over HTTP, on a real model and real data.

Fine-tunes the packaged MiniLM on packaged movie reviews (once), starts the service, posts the checkpoint, watches the
pass, downloads the smaller model, loads it and compares it with the old one. Everything it keeps is in ``var/``.
"""

import json
import shutil
import signal
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from axformer.cli.display import closing_table, display_for
from axformer.cli.quiet import silence_libraries
from axformer.config import PassConfig
from axformer.elements import Dimensions
from axformer.errors import AxFormerError
from benchmarks.demo_checkpoint import demo_checkpoint
from benchmarks.demo_data import CACHE, movie_reviews
from benchmarks.demo_result import check_loading, check_loss, held_out_verdict, read_report
from benchmarks.demo_service import Service, ServiceError
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
        service = Service(address)
        with service.posted(_job(service, checkpoint, data)) as job:
            console.rule(f"3  The pass: {job['id']}")
            _watch(console, service, job, checkpoint)
            result = _fetch(service, job["id"])
        console.rule("4  The smaller model")
        console.print(f"Downloaded to {result}; the trace over HTTP equals trace.jsonl, record by record")
    _try_out(console, result, data["validation"], job["config"]["max_length"])
    report = read_report(result)
    console.print(closing_table(report))
    console.print(held_out_verdict(report), style="bold")
    console.print(f"The pass took {report['seconds']:.0f} s, everything {time.monotonic() - begun:.0f} s.")


def _job(service: Service, checkpoint: Path, data: dict[str, Path]) -> dict[str, Any]:
    archive = CACHE / "checkpoint.tar"
    with tarfile.open(archive, "w") as tar:
        for path in sorted(checkpoint.iterdir()):
            tar.add(path, path.name)
    return {
        "name": "demo: MiniLM on movie reviews",
        "forms": ["compact"],
        "checkpoint": {"uri": service.upload(archive)},
        "validation": {"uri": service.upload(data["validation"])},
        "test": {"uri": service.upload(data["test"])},
    }


def _watch(console: Console, service: Service, job: dict[str, Any], checkpoint: Path) -> None:
    state = None
    with display_for(console, _dimensions(checkpoint), PassConfig(**job["config"])) as display:
        for update in service.watch(job["id"]):
            for trial in update.trials:
                display.show(trial)
            if update.job["state"] != state:
                state = update.job["state"]
                console.print(f"[dim]the job is {state}[/dim]")


def _fetch(service: Service, job_id: str) -> Path:
    """Download the result, and compare its trace with the one that the API has shown."""
    result = CACHE / "result"
    shutil.rmtree(result, ignore_errors=True)
    service.download(job_id, result)
    if service.trace_lines(job_id) != (result / "trace.jsonl").read_text(encoding="utf-8"):
        raise ServiceError("the trace over HTTP is not the trace.jsonl of the result")
    return result


def _try_out(console: Console, result: Path, validation: Path, max_length: int) -> None:
    answer = check_loading(result, _SENTENCE)
    console.print(f"Loads by axformer.load and by transformers.pipeline: '{_SENTENCE}' is {answer['label']}")
    loss = check_loss(result, read_rows(validation, Row), max_length)
    console.print(f"Measured again here, outside of the service: validation loss {loss:.4f}, as reported")


def _dimensions(checkpoint: Path) -> Dimensions:
    config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    return Dimensions(
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        hidden_size=config["hidden_size"],
        intermediate_size=config["intermediate_size"],
    )


def main() -> int:
    """The command; 0 when everything went well."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(highlight=False, soft_wrap=True)
    try:
        demo(console)
    except KeyboardInterrupt:
        console.print("Interrupted; what was started is stopped.")
        return _INTERRUPTED
    except (PackageError, StackStartError, ServiceError, AxFormerError) as error:
        console.print(f"The demo failed: {error}", style="red", markup=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""``make demo``: the main job end to end, over HTTP, on a real model and real data.

Fine-tunes the packaged MiniLM on packaged movie reviews (once), starts the service, posts the checkpoint with two goals,
watches both jobs, downloads what they made, loads and measures it here again, and says which file to deploy. Then the packaged
MiniLM itself, a sentence embedder, is made smaller without a label. Everything it keeps is in ``var/``.
"""

import signal
import sys
import time
from pathlib import Path

from rich.console import Console

from axformer.cli.characters import replace_unknown_characters
from axformer.cli.deploying import show_deployables
from axformer.cli.display import duration, finding_line
from axformer.cli.libraries import silence_libraries
from axformer.cli.watch import show_job
from axformer.client import Client, Job
from axformer.errors import AxFormerError
from benchmarks.demo_data import CACHE, demo_checkpoint, movie_reviews
from benchmarks.demo_result import Delivered, advice, chart_of, check_loading, check_loss, read_report
from benchmarks.demo_service import EMBEDDER, JOBS, StackStartError, Wanted, fetch, posted, running_stack
from benchmarks.packages import PackageError, minilm
from benchmarks.rows import Row, read_rows

_SENTENCE = "A quiet, clever film that stays with you long after the lights come up."
_INTERRUPTED = 130  # what shells give for Ctrl-C
_CHART = CACHE / "results" / "forms.svg"


def demo(console: Console) -> None:
    """Do the whole job and say what came of it.

    Raises:
        PackageError, StackStartError, ServiceError, AxFormerError: a step went wrong; the message says which.
    """
    begun = time.monotonic()
    silence_libraries()
    console.rule("1  A checkpoint and its data")
    data = movie_reviews()
    counts = {name: len(path.read_text("utf-8").split("\n")) - 1 for name, path in data.items()}
    console.print(", ".join(f"{name}: {count:,} sentences" for name, count in counts.items()))
    console.print("MiniLM, fine-tuned on them (the first time takes a minute or two):")
    checkpoint = demo_checkpoint(data["train"])
    console.print(f"{checkpoint}")
    ready = time.monotonic()
    console.rule("2  The service")
    results = []
    with running_stack() as address:
        console.print(f"The service answers at {address.url}")
        with Client(address.url, address.api_key) as client, posted(client, checkpoint, data) as jobs:
            for number, (wanted, job) in enumerate(zip(JOBS, jobs, strict=True), 3):
                console.rule(f"{number}  {wanted.title}: {wanted.goal}")
                results.append(_carried_out(console, client, wanted, job, data))
        console.rule(f"{len(JOBS) + 3}  A sentence embedder, without a label: {EMBEDDER.goal}")
        with Client(address.url, address.api_key) as client, posted(client, minilm(), data, [EMBEDDER]) as (job,):
            embedder = _downloaded(console, client, EMBEDDER, job)
    console.rule(f"{len(JOBS) + 4}  What can be deployed")
    _tell(console, Delivered(f"the embedder, {EMBEDDER.goal}", embedder, read_report(embedder)))
    for result in results:
        _tell(console, result)
    _CHART.write_text(chart_of(results), encoding="utf-8")
    console.print(f"The forms in one picture: {_CHART}")
    console.print(advice(results), style="bold green", soft_wrap=True)
    now = time.monotonic()
    console.print(f"The checkpoint took {duration(ready - begun)}, the rest {duration(now - ready)}.")


def _downloaded(console: Console, client: Client, wanted: Wanted, job: Job) -> Path:
    """Watch a job, and download its result."""
    show_job(console, client, job.id)
    result = fetch(client, job.id, wanted)
    console.print(f"Downloaded to {result}; the trace over HTTP equals trace.jsonl, record by record")
    return result


def _carried_out(console: Console, client: Client, wanted: Wanted, job: Job, data: dict[str, Path]) -> Delivered:
    """Watch a job, download its result, and check it here, outside of the service."""
    result = _downloaded(console, client, wanted, job)
    answer = check_loading(result, _SENTENCE)
    console.print(f"Loads by axformer.load and by transformers.pipeline: '{_SENTENCE}' is {answer['label']}")
    loss = check_loss(result, read_rows(data[wanted.data], Row), job.config["max_length"])
    console.print(f"Measured again here: validation loss {loss:.4f}, as reported")
    return Delivered(wanted.goal, result, read_report(result))


def _tell(console: Console, result: Delivered) -> None:
    """The account of one result: its forms, its finding, and its certificate."""
    report = result.report
    console.print(f"\n[bold]{result.goal}[/bold]: {result.directory}/report.html")
    show_deployables(console, report)
    console.print(finding_line(report["finding"]), soft_wrap=True)
    if report["certificate"] is not None:
        console.print(report["certificate"]["sentence"], soft_wrap=True)


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

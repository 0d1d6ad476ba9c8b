"""What a GPU does with this project, beside the processors of its own machine: laws, runs, throughput, memory and faults.

    python -m benchmarks.gpu [--rehearse] [--checkpoint DIR --rows DIR] [--output FILE]

A checkout, PyTorch, transformers and the library's other packages are enough. Without ``--checkpoint`` the demo's data and
model are fetched and trained. Each part is a process of its own, so that its peaks are its own, and the file is written after
each part. ``--rehearse`` does the same on the CPU, with little data, to find mistakes before a GPU is paid for.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parent / "results" / "gpu.json"
REPOSITORY = Path(__file__).parents[1]
LAWS = "tests/gpu"
LIMIT = 120
"""Seconds that one part may take."""
SHAPES = {"MiniLM-L6": (6, 384, 12, 1536), "BERT-base": (12, 768, 12, 3072)}
"""Layers, width, heads and neurons; throughput does not depend on what the weights are."""
TOKENS = 128
RUNS: Mapping[str, tuple[str, ...]] = {
    "pass": ("--data", "validation", "--preset", "paper"),
    "compress": ("--data", "more", "--calibrate", "texts", "--goal", "operations=2"),
    "latency": ("--data", "more", "--calibrate", "texts", "--goal", "speedup=1.5"),
    "polish": ("--data", "more", "--calibrate", "texts", "--goal", "operations=2", "--set", "polish=1"),
    "layers": (
        *("--data", "more", "--train", "train", "--method", "layers", "--set", "drop=3"),
        *("--finetune", "epochs=1", "--finetune", "bf16=true"),
    ),
}
"""Runs of ``axformer prune``; words that name a file of the rows stand for it."""
BESIDE_CPU = ("pass", "compress")
COMMAND = (sys.executable, "-c", "from axformer.cli.main import app; app()")


class Bench:
    """The parts, in the order of their worth if time runs out."""

    def __init__(self, device: str, checkpoint: Path, rows: Path, work: Path) -> None:
        self.device, self._checkpoint, self._rows, self._work = device, checkpoint, rows, work
        self.parts: Mapping[str, Callable[[], Any]] = {
            "laws": self.laws,
            **{f"{name} on {device}": lambda name=name: self.run(name, device) for name in RUNS},  # type: ignore[misc]
            "throughput": lambda: self.child("throughput", device),
            "two at once": self.two_at_once,
            "no room": self.no_room,
            **{f"{name} on cpu": lambda name=name: self.run(name, "cpu") for name in BESIDE_CPU},  # type: ignore[misc]
            "throughput on cpu": lambda: self.child("throughput", "cpu"),
        }

    def laws(self) -> dict[str, Any]:
        """The tests of ``tests/gpu``, several at a time."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "--noconftest",
            LAWS,
            "-q",
            "-p",
            "no:cacheprovider",
            "-W",
            "default",
            "-n",
            "8",
        ]
        done = _run(command, {"AXFORMER_TEST_DEVICE": self.device, "OMP_NUM_THREADS": "1"})
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return {"outcome": done.stdout.strip().splitlines()[-1:], "failed": failed, "errors": done.stderr[-2000:]}

    def run(self, name: str, device: str) -> dict[str, Any]:
        """One run of the command, and the memory that it was said to take."""
        output = self._output(name, device)
        started = time.monotonic()
        done = _run(self._prune(name, device, output))
        report = output / "report.json"
        if not report.is_file():
            return {"failed": done.returncode, "said": done.stderr[-1500:]}
        told = json.loads(report.read_text(encoding="utf-8"))
        trace = [json.loads(line) for line in (output / "trace.jsonl").read_text(encoding="utf-8").splitlines()]
        test = {side: told[side]["test"] for side in ("base", "pruned")}
        return {
            "seconds": round(time.monotonic() - started, 2),
            "search_seconds": round(told["seconds"], 2),
            "decisions": [(trial["element"], trial["verdict"]) for trial in trace],
            "losses": [trial["loss"] for trial in trace],
            "test": test,
            "operations": [told[side]["encoder_operations"] for side in ("base", "pruned")],
            "latency_ms": [told[side]["latency_ms"] for side in ("base", "pruned")],
            "peak_bytes": told["work"]["peak_bytes"],
            "device_peak_bytes": told["work"]["device_peak_bytes"],
            "estimate": self._estimate(output, device),
            "environment": told["environment"],
        }

    def child(self, what: str, device: str) -> Any:
        """A part that needs a process of its own."""
        done = _run([sys.executable, "-m", "benchmarks.gpu", "--child", what, "--device", device])
        return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"failed": done.stderr[-1500:]}

    def two_at_once(self) -> dict[str, Any]:
        """Two passes side by side on one card, as two workers would."""
        outputs = [self._output(f"side-{index}", self.device) for index in range(2)]
        started = time.monotonic()
        running = [
            subprocess.Popen(self._prune("pass", self.device, output), env=_environment({}), stdout=subprocess.DEVNULL)
            for output in outputs
        ]
        codes = [one.wait(LIMIT) for one in running]
        seconds = round(time.monotonic() - started, 2)
        traces = [(output / "trace.jsonl") for output in outputs]
        kept = [[json.loads(line)["verdict"] for line in trace.read_text().splitlines()] for trace in traces]
        return {"seconds": seconds, "exit_codes": codes, "same_verdicts": kept[0] == kept[1]}

    def no_room(self) -> dict[str, Any]:
        """A pass where another process holds all of the card's memory but a gigabyte."""
        if self.device != "cuda":
            return {"skipped": "only on a GPU"}
        hog = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.gpu", "--child", "hog", "--device", self.device],
            env=_environment({}),
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE,
            text=True,
        )
        assert hog.stdout is not None
        held = hog.stdout.readline().strip()
        output = self._output("no-room", self.device)
        done = _run(self._prune("pass", self.device, output))
        hog.communicate("done\n", timeout=60)
        return {"held_bytes": held, "exit_code": done.returncode, "said": done.stderr[-800:]}

    def _output(self, name: str, device: str) -> Path:
        return self._work / f"{name}-{device}"

    def _prune(self, name: str, device: str, output: Path) -> list[str]:
        files = {path.stem: str(path) for path in self._rows.glob("*.jsonl")}
        arguments = [files.get(word, word) for word in RUNS[name]]
        places = ["--test", files["test"], "--device", device, "--output", str(output), "--forms", "compact"]
        return [*COMMAND, "prune", str(self._checkpoint), *arguments, *places, "--accept-poor-model"]

    def _estimate(self, output: Path, device: str) -> dict[str, int]:
        from axformer.devices import batch_tokens_of
        from axformer.intake.footprint import RunWork, at_ease, least
        from axformer.intake.sizes import read_data_sizes, read_sizes
        from axformer.wire.run import DATA, read_run

        asked = json.loads((output / "run.json").read_text(encoding="utf-8"))
        settled = read_run(asked).settled()
        sizes = read_sizes(self._checkpoint, None)
        files = {part: Path(source.uri) for part, source in settled.run.sources().items() if part in DATA}
        data = read_data_sizes(files, settled.knobs, sizes.dimensions.intermediate_size)
        work, tokens = RunWork(settled.knobs, settled.finetune), batch_tokens_of(device)
        found = {of.__name__: of(sizes, data, work, tokens, on_gpu=device == "cuda") for of in (least, at_ease)}
        return {
            f"{name}_{where}": getattr(one, f"{where}_bytes")
            for name, one in found.items()
            for where in ("host", "device")
        }


def throughput(device: str) -> list[dict[str, Any]]:
    """Rows of 128 tokens a second, of whole encoders and of those with half of their heads and neurons."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from axformer.architectures.registry import architecture_of
    from axformer.model.compact import compact
    from axformer.plan.plan import LayerPlan, Plan

    found = []
    for name, (layers, width, heads, neurons) in SHAPES.items():
        config = BertConfig(
            hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=neurons
        )
        torch.manual_seed(0)
        whole: Any = BertForSequenceClassification(config)
        whole.train(False)
        layer = LayerPlan(
            attention=True,
            heads=tuple(range(heads // 2)),
            ffn=True,
            neurons=((0, neurons // 2),),
            hard_attention=None,
        )
        half = compact(whole, architecture_of("bert"), Plan(layers=(layer,) * layers))
        for dtype in (torch.float32, torch.bfloat16) if device == "cuda" else (torch.float32,):
            for batch in (1, 32, 256) if device == "cuda" else (1, 32):
                pair = [model.to(device, dtype) for model in (whole, half)]
                before, after = (_rows_a_second(model, batch, device) for model in pair)
                found.append(
                    {"model": name, "dtype": str(dtype), "batch": batch, "whole": before, "half": after}
                    | {"times": round(after / before, 3)}
                )
    return found


def _rows_a_second(model: Any, batch: int, device: str) -> float:
    import torch

    inputs = torch.randint(1000, 20000, (batch, TOKENS), device=device)
    taken = []
    with torch.inference_mode():
        for index in range(25 if device == "cuda" else 7):
            _wait_for(device)
            started = time.perf_counter()
            model(input_ids=inputs)
            _wait_for(device)
            if index >= 2:
                taken.append(time.perf_counter() - started)
    return round(batch / statistics.median(taken), 1)


def _wait_for(device: str) -> None:
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def hog(device: str) -> None:
    """Hold the card's memory but a gigabyte until a line comes in."""
    import torch

    free = torch.cuda.mem_get_info(device)[0] - 2**30
    held = torch.empty(free, dtype=torch.uint8, device=device)
    print(held.numel(), flush=True)
    sys.stdin.readline()


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]), **more}


def _run(command: list[str], more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, env=_environment(more or {}), cwd=REPOSITORY, capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired as late:
        said = (late.stderr or b"").decode(errors="replace") if isinstance(late.stderr, bytes) else (late.stderr or "")
        return subprocess.CompletedProcess(command, 124, "", f"not done after {LIMIT} s\n{said}")


def _demo() -> tuple[Path, Path]:
    from benchmarks.demo_data import CACHE, demo_checkpoint, movie_reviews

    files = movie_reviews()
    return demo_checkpoint(files["train"]), CACHE


def _shortened(rows: Path, work: Path) -> Path:
    cut = work / "rows"
    cut.mkdir()
    for file in rows.glob("*.jsonl"):
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        (cut / file.name).write_text("".join(lines[:120]), encoding="utf-8")
    return cut


def main() -> None:
    """Measure all parts, or one of them in a child."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--child", choices=["throughput", "hog"])
    parser.add_argument("--parts", help="names of parts, comma-separated")
    asked = parser.parse_args()
    if asked.child == "throughput":
        print(json.dumps(throughput(asked.device)))
        return
    if asked.child == "hog":
        hog(asked.device)
        return
    checkpoint, rows = (asked.checkpoint, asked.rows) if asked.checkpoint else _demo()
    with tempfile.TemporaryDirectory(prefix="axformer-gpu-") as work:
        rows = _shortened(rows, Path(work)) if asked.rehearse else rows
        bench = Bench("cpu" if asked.rehearse else asked.device, checkpoint.resolve(), rows.resolve(), Path(work))
        found: dict[str, Any] = {}
        for name, part in bench.parts.items():
            if asked.parts and name not in asked.parts.split(","):
                continue
            started = time.monotonic()
            found[name] = part()
            print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)
            asked.output.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

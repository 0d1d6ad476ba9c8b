"""Which loader opens the form ``hub`` of which family and task, and gives the model's own logits: ``docs/loaders.md``.

    python -m benchmarks.loaders [--only bert-classification,...]

Tiny real models of every family are cut, written as ``hub`` and opened by the loaders themselves. transformers.js is fetched
from npm into ``var/npm``; Optimum and sentence-transformers, which need transformers 4, by pip into ``var/optimum``. Programs
that do not run here are judged by what they read (:mod:`benchmarks.loaders_schema`).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from transformers import AutoConfig, AutoTokenizer

from axformer.forms.kinds import HUB, KINDS, ONNX, ONNX_INT8
from axformer.forms.make import Finished, loaded_form
from axformer.model.compact import compact
from axformer.plan.elements import parse
from axformer.plan.plan import Plan
from benchmarks.loaders_schema import SEQUENCE, NoTaskError, by_tei, by_triton

SCRIPT = Path(__file__).with_name("loaders.mjs")
NPM, JS = Path("var/npm"), "@huggingface/transformers@4.3.2"
PAGE = Path(__file__).parents[1] / "docs" / "loaders.md"
TEMPLATE = Path(__file__).parent / "templates" / "loaders.md"
TEXT = "word1 word2 word3 word4 word5"
TOLERANCE = 1e-3
OLDER = Path("var/optimum")
OLDER_PACKAGES = (
    *("transformers==4.57.6", "huggingface_hub==0.36.0", "tokenizers==0.22.2", "optimum==2.1.0", "optimum-onnx==0.1.0"),
    "sentence-transformers==5.2.0",
)
OPTIMUM, ENCODERS = "Optimum", "sentence-transformers"
RUN = ("transformers", "onnxruntime", "openvino", "transformers.js", OPTIMUM, ENCODERS)
SCHEMA = ("TEI", "Triton")
LOADERS = (*RUN, *SCHEMA)
NO_TASK = "no such task"
REMOVED = ("layer.1.attention.head.1", "layer.2.ffn.neurons.0:24", "layer.0.attention")
"""Of each model: so layers are unlike each other."""
Verdict = str
"""Empty if a loader gives the model's own logits, else why not."""


@dataclass(frozen=True)
class Hub:
    """A written directory, and what its graphs should give."""

    name: str
    task: str
    directory: Path
    logits: np.ndarray
    """Of the compact model for :data:`TEXT`, flat."""
    inputs: Mapping[str, np.ndarray]
    int8: np.ndarray
    """Of the graph in 8 bits, by ONNX Runtime."""


def made(case: Any, directory: Path) -> Hub:
    """Write the hub of one case."""
    from tests.family_cases import checkpoint_of, data_of

    checkpoint = checkpoint_of(case)
    plan = Plan.full(checkpoint.dimensions)
    for id in REMOVED:
        plan = plan.apply(parse(id), top_k=None)
    model = compact(checkpoint.model, checkpoint.architecture, plan)
    finished = Finished(checkpoint, plan, model, data_of(case).samples)
    graph = loaded_form(finished, ONNX, directory).model
    int8 = loaded_form(finished, ONNX_INT8, directory).model
    given = checkpoint.tokenizer(TEXT, return_tensors="pt", return_token_type_ids=True)
    inputs = {name: given[name] for name in graph._inputs}
    if case.task == "multiple_choice":
        inputs = {name: values[:, None].repeat(1, 2, 1) for name, values in inputs.items()}
    with torch.inference_mode():
        wanted = _logits(model(**inputs))
    return Hub(
        *(str(case), case.task, directory / HUB, wanted),
        inputs={name: values.numpy() for name, values in inputs.items()},
        int8=_logits(int8(**inputs)),
    )


def _logits(outputs: Any) -> np.ndarray:
    logits = outputs["logits"] if "logits" in outputs else outputs["start_logits"]
    return np.asarray(logits.float().numpy()).ravel()


def judged(hubs: Sequence[Hub]) -> dict[str, dict[str, Verdict]]:
    """For each hub the verdict of each loader."""
    found = {hub.name: {name: _outcome(loader, hub) for name, loader in LOADS.items()} for hub in hubs}
    for hub, verdict in zip(hubs, in_js(hubs), strict=True):
        found[hub.name]["transformers.js"] = verdict
    for hub, (verdict, of_encoder) in zip(hubs, in_optimum(hubs), strict=True):
        found[hub.name] |= {OPTIMUM: verdict, ENCODERS: of_encoder if hub.task in SEQUENCE else NO_TASK}
    return found


def _outcome(loader: Any, hub: Hub) -> Verdict:
    try:
        loader(hub)
    except NoTaskError:
        return NO_TASK
    except Exception as error:  # noqa: BLE001 - whatever a loader says is its verdict
        return str(error).splitlines()[0] if str(error) else type(error).__name__
    return ""


def _agree(found: np.ndarray, wanted: np.ndarray, what: str) -> None:
    assert found.shape == wanted.shape, f"{what}: {found.shape} logits, not {wanted.shape}"
    apart = float(np.abs(found - wanted).max())
    assert apart <= TOLERANCE * max(1.0, float(np.abs(wanted).max())), f"{what}: logits differ by {apart:.1e}"


def by_transformers(hub: Hub) -> None:
    """Configuration and tokenizer are the family's."""
    config = AutoConfig.from_pretrained(hub.directory, local_files_only=True)
    assert config.architectures, "no architectures"
    ids = AutoTokenizer.from_pretrained(hub.directory, local_files_only=True)(TEXT)["input_ids"]
    assert ids == hub.inputs["input_ids"].reshape(-1, len(ids))[0].tolist(), "other ids"


def by_onnxruntime(hub: Hub) -> None:
    """The graph gives the model's logits, and every linear map of the other graph computes in 8 bits."""
    import onnxruntime

    session = onnxruntime.InferenceSession(hub.directory / KINDS[ONNX].graph, providers=["CPUExecutionProvider"])
    _agree(session.run(None, dict(hub.inputs))[0].ravel(), hub.logits, "float32")
    check_int8(hub.directory / KINDS[ONNX_INT8].graph)


def check_int8(graph: Path) -> None:
    """Check that no product with a constant matrix is left in float32, but those with a matrix for each head."""
    content = onnx.load(graph).graph
    floats = {one.name for one in content.initializer if one.data_type == onnx.TensorProto.FLOAT and len(one.dims) == 2}
    left = [
        node.name for node in content.node if node.op_type in ("MatMul", "Gemm") and floats.intersection(node.input)
    ]
    assert not left, f"{len(left)} products in float32, such as {left[0]}"
    assert any(node.op_type == "MatMulInteger" for node in content.node), "nothing computes in 8 bits"


def by_openvino(hub: Hub) -> None:
    """Both graphs compile, and give the logits of ONNX Runtime."""
    import openvino  # type: ignore[import-untyped]

    core = openvino.Core()
    for kind, wanted in ((ONNX, hub.logits), (ONNX_INT8, hub.int8)):
        # Without this hint processors that multiply bfloat16 do so.
        compiled = core.compile_model(hub.directory / KINDS[kind].graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        given = compiled(dict(hub.inputs))[0]
        if kind == ONNX:
            _agree(np.asarray(given).ravel(), wanted, kind)
        else:
            assert np.isfinite(given).all(), f"{kind}: not numbers"


LOADS = {
    "transformers": by_transformers,
    "onnxruntime": by_onnxruntime,
    "openvino": by_openvino,
    "TEI": lambda hub: by_tei(hub.directory, hub.task),
    "Triton": lambda hub: by_triton(hub.directory, hub.task),
}


def in_js(hubs: Sequence[Hub]) -> list[Verdict]:
    """The verdicts of transformers.js, of both graphs."""
    library = npm_library()
    asked = [
        {"directory": str(hub.directory), "task": hub.task, "dtype": dtype, "text": TEXT}
        for hub in hubs
        for dtype in ("fp32", "q8")
    ]
    answers = _asked(asked, ["node", str(SCRIPT)], str(library))
    return [_in_js(hub, *answers[2 * index : 2 * index + 2]) for index, hub in enumerate(hubs)]


def in_optimum(hubs: Sequence[Hub]) -> list[tuple[Verdict, Verdict]]:
    """The verdicts of Optimum and of sentence-transformers, of both graphs."""
    packages = older_packages()
    asked = [
        {
            **{"directory": str(hub.directory), "task": hub.task, "graph": Path(KINDS[kind].graph).name, "text": TEXT},
            "inputs": {name: values.tolist() for name, values in hub.inputs.items()},
        }
        for hub in hubs
        for kind in (ONNX, ONNX_INT8)
    ]
    older = SCRIPT.with_name("loaders_optimum.py")
    answers = _asked(asked, [sys.executable, str(older)], env={**os.environ, "PYTHONPATH": str(packages)})
    return [_in_optimum(hub, *answers[2 * index : 2 * index + 2]) for index, hub in enumerate(hubs)]


def _in_optimum(hub: Hub, plain: Mapping[str, Any], rounded: Mapping[str, Any]) -> tuple[Verdict, Verdict]:
    for answer in (plain, rounded):
        if "failed" in answer:
            return answer["failed"], answer["failed"]
    own = hub.inputs["input_ids"]
    if plain["ids"] != own.reshape(-1, own.shape[-1])[0].tolist():
        return "other token ids", "other token ids"
    verdicts = _apart(plain, "logits", hub.logits) or _apart(rounded, "logits", hub.int8)
    pairs = (_apart(one, "encoder", np.array(one["pair"])) for one in (plain, rounded) if "pair" in one)
    return verdicts, next(filter(None, pairs), "")


def _apart(answer: Mapping[str, Any], key: str, wanted: np.ndarray) -> Verdict:
    if isinstance(answer[key], str):
        return str(answer[key])
    try:
        _agree(np.array(answer[key]), wanted, key)
    except AssertionError as error:
        return str(error)
    return ""


def _asked(asked: Sequence[Any], command: Sequence[str], *more: str, env: Mapping[str, str] | None = None) -> list[Any]:
    """What a program of another language, or with other packages, answers."""
    with tempfile.TemporaryDirectory(prefix="axformer-asked-") as scratch:
        file = Path(scratch, "asked.json")
        file.write_text(json.dumps(asked), encoding="utf-8")
        done = subprocess.run(
            [*command, str(file), *more], capture_output=True, text=True, check=True, timeout=1200, env=env
        )
    answers: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return answers


def _in_js(hub: Hub, plain: Mapping[str, Any], rounded: Mapping[str, Any]) -> Verdict:
    for dtype, answer in (("fp32", plain), ("q8", rounded)):
        if "failed" in answer:
            return f"{dtype}: {answer['failed']}"
    if plain["ids"] != hub.inputs["input_ids"].ravel().tolist():
        return "other token ids"
    return _apart(plain, "logits", hub.logits) or _apart(rounded, "logits", hub.int8)


def npm_library() -> Path:
    """Where transformers.js lies; it is fetched at the first call.

    Raises:
        subprocess.CalledProcessError: npm cannot fetch it.
    """
    modules = (NPM / "node_modules").resolve()
    if not (modules / "@huggingface/transformers").is_dir():
        NPM.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(NPM), JS]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
    return modules


def older_packages() -> Path:
    """Where Optimum and what it needs lie; they are fetched at the first call.

    Raises:
        subprocess.CalledProcessError: pip cannot fetch them.
    """
    if not (OLDER / "optimum").is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(OLDER)]
        subprocess.run([*command, *OLDER_PACKAGES], check=True, capture_output=True, timeout=600)
    return OLDER.resolve()


def main() -> None:
    """Write the page."""
    from tests.family_cases import all_cases

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="names of cases, comma-separated; prints instead of writing the page")
    only = parser.parse_args().only
    cases = [case for case in all_cases() if only is None or str(case) in only.split(",")]
    with tempfile.TemporaryDirectory(prefix="axformer-hubs-") as scratch:
        found = judged([made(case, Path(scratch, str(case))) for case in cases])
    if only is not None:
        print(json.dumps(found, indent=1))
        return
    PAGE.write_text(TEMPLATE.read_text(encoding="utf-8") + page(found), encoding="utf-8")


def page(found: Mapping[str, Mapping[str, Verdict]]) -> str:
    """The table, and below it what did not work."""
    lines = ["|family, task|" + "|".join(LOADERS) + "|", "|---" * (len(LOADERS) + 1) + "|"]
    reasons: dict[str, int] = {}
    for name, verdicts in found.items():
        cells = [_cell(verdicts[loader], "✓" if loader in RUN else "○", reasons) for loader in LOADERS]
        lines.append(f"|{name}|{'|'.join(cells)}|")
    notes = [f"{number}. {reason}" for reason, number in reasons.items()]
    return "\n".join([*lines, "", *notes, ""])


def _cell(verdict: Verdict, works: str, reasons: dict[str, int]) -> str:
    if verdict in ("", NO_TASK):
        return "–" if verdict else works
    return f"✗ {reasons.setdefault(verdict, len(reasons) + 1)}"


if __name__ == "__main__":
    main()

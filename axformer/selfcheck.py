"""Load a finished model in a fresh process and compare it with the model in memory before anybody sees it."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from axformer.data import Rows
from axformer.errors import ArtifactError

SAMPLES = 32
TOLERANCE = 1e-5
TIMEOUT_SECONDS = 600


def self_check(model: Any, tokenizer: Any, rows: Rows, max_length: int | None, directory: Path) -> None:
    """Make sure that a saved model gives the logits of the model in memory.

    Args:
        model: the model in memory.
        tokenizer: of the model in memory.
        rows: real inputs; some of them, spread over the file, go through both.
        max_length: cut longer inputs to this many tokens.
        directory: what was saved.

    Raises:
        ArtifactError: the saved model does not load in a fresh process, or computes something else.
    """
    chosen = range(0, len(rows), -(-len(rows) // SAMPLES))
    texts = [rows.text[place] for place in chosen]
    pairs = None if rows.text_pair is None else [rows.text_pair[place] for place in chosen]
    question = {
        "model": str(directory),
        "device": str(model.device),
        "texts": texts,
        "pairs": pairs,
        "max_length": max_length,
    }
    expected = logits_of(model, tokenizer, texts, pairs, max_length)
    with tempfile.TemporaryDirectory(prefix="axformer-check-") as scratch:
        path = Path(scratch, "question.json")
        path.write_text(json.dumps(question), encoding="utf-8")
        answer = _ask(path)
    difference = float((torch.tensor(answer) - expected).abs().max())
    if not difference <= TOLERANCE:
        raise ArtifactError(
            f"the saved model's logits differ by {difference:.2e} from the model in memory (allowed: {TOLERANCE:.0e}); "
            "it was not published"
        )


@torch.inference_mode()
def logits_of(
    model: Any, tokenizer: Any, texts: Sequence[str], pairs: Sequence[str] | None, max_length: int | None
) -> Tensor:
    """A model's logits for texts in one batch, shape (texts, labels), on the CPU."""
    inputs = tokenizer(
        list(texts),
        None if pairs is None else list(pairs),
        padding=True,
        truncation=max_length is not None,
        max_length=max_length,
        return_tensors="pt",
    ).to(model.device)
    logits: Tensor = model(**inputs).logits
    return logits.cpu()


def _ask(question: Path) -> list[list[float]]:
    process = subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "axformer.selfcheck", str(question)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if process.returncode != 0:
        reason = process.stderr.strip().splitlines()[-1] if process.stderr.strip() else "no reason given"
        raise ArtifactError(f"the saved model does not load in a fresh process: {reason}; it was not published")
    answer: list[list[float]] = json.loads(process.stdout.strip().splitlines()[-1])
    return answer


def _answer(question: Path) -> list[list[float]]:
    """What the fresh process does: load as a user would, and compute."""
    from transformers import AutoTokenizer

    from axformer.artifact import load

    asked = json.loads(question.read_text(encoding="utf-8"))
    model = load(asked["model"]).to(asked["device"])
    tokenizer = AutoTokenizer.from_pretrained(asked["model"], local_files_only=True)
    answer: list[list[float]] = logits_of(
        model, tokenizer, asked["texts"], asked["pairs"], asked["max_length"]
    ).tolist()
    return answer


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_answer(Path(sys.argv[1]))) + "\n")

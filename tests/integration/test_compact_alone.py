"""The compact form serves where this package is installed from its wheel, with what it says it needs and no source tree."""

import json
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path

import pytest
import torch

import axformer.auto  # noqa: F401 - registers the compact models
from axformer.model.compact import compact
from tests.family_cases import Case, checkpoint_of, some_plan
from tests.integration.bare_environment import BareEnvironment, needs_of

ROOT = Path(__file__).parents[2]
ABSENT = ("store", "api", "worker", "tests", "fastapi", "celery", "sqlalchemy", "onnxruntime", "pytest")
TEXTS = ["word1 word2 word3", "word4", "word5 word6 word7 word8 word9 word10 word11"]
CASE = Case("bert", "classification")
SCRIPT = """
import json, sys
import torch
import axformer.auto
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline
path, *texts = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(path)
batch = tokenizer(texts, padding=True, return_tensors="pt")
with torch.inference_mode():
    models = axformer.load(path), AutoModelForSequenceClassification.from_pretrained(path)
    logits = [model(**batch).logits for model in models]
labels = [answer["label"] for answer in pipeline("text-classification", model=path)(texts)]
print(json.dumps({"file": axformer.__file__, "same": torch.equal(*logits), "logits": logits[0].tolist(), "labels": labels}))
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", target, ROOT]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        pytest.skip(
            f"pip cannot build the wheel here, which takes hatchling from the package index: {ran.stderr.strip()}"
        )
    (found,) = target.glob("*.whl")
    return found


def installed(wheel: Path, home: Path) -> BareEnvironment:
    """An environment with the wheel and what it needs."""
    bare = BareEnvironment(home)
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        bare.python,
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        wheel,
    ]
    subprocess.run(command, check=True, capture_output=True)
    (information,) = bare.packages.glob("axformer-*.dist-info")
    bare.add(str(need) for need in needs_of(Distribution.at(information)))
    return bare


def test_it_serves_alone(wheel: Path, tmp_path: Path) -> None:
    checkpoint = checkpoint_of(CASE)
    small = compact(checkpoint.model, checkpoint.architecture, some_plan(1))
    for part in (small, checkpoint.tokenizer):
        part.save_pretrained(tmp_path / "model")
    with torch.inference_mode():
        wanted = small(**checkpoint.tokenizer(TEXTS, padding=True, return_tensors="pt")).logits
    bare = installed(wheel, tmp_path / "bare")
    assert bare.holds("axformer", "torch", *ABSENT) == ["axformer", "torch"]
    ran = bare.run(SCRIPT, tmp_path / "model", *TEXTS, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    assert Path(answer["file"]).is_relative_to(bare.packages)
    assert answer["same"]
    torch.testing.assert_close(torch.tensor(answer["logits"]), wanted, rtol=0, atol=1e-5)
    assert answer["labels"] == [small.config.id2label[place] for place in wanted.argmax(dim=-1).tolist()]

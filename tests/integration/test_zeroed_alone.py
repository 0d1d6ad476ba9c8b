"""The zeroed form serves where stock PyTorch and transformers are, and this package is not."""

import json
from pathlib import Path

import pytest
import torch

from axformer.forms.zeroed import zeroed
from axformer.model.compact import compact
from axformer.plan.plan import Plan
from tests.family_cases import Case, checkpoint_of, some_plan
from tests.integration.bare_environment import BareEnvironment

ALLOWED = ("torch", "transformers", "safetensors")
ABSENT = ("axformer", "store", "api", "worker", "fastapi", "celery", "sqlalchemy", "onnxruntime", "pytest")
TEXTS = ["word1 word2 word3", "word4", "word5 word6 word7 word8 word9 word10 word11"]
CASE = Case("bert", "classification")
SCRIPT = """
import json, sys
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
path, *texts = sys.argv[1:]
model, tokenizer = AutoModelForSequenceClassification.from_pretrained(path), AutoTokenizer.from_pretrained(path)
with torch.inference_mode():
    logits = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits
print(json.dumps({"class": type(model).__module__, "logits": logits.tolist()}))
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_it_serves_alone(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(CASE)
    soft = (layer.model_copy(update={"hard_attention": None}) for layer in some_plan(1).layers)
    plan = Plan(layers=tuple(soft))
    for part in (zeroed(checkpoint.model, checkpoint.architecture, plan), checkpoint.tokenizer):
        part.save_pretrained(tmp_path / "zeroed")
    small = compact(checkpoint.model, checkpoint.architecture, plan)
    with torch.inference_mode():
        wanted = small(**checkpoint.tokenizer(TEXTS, padding=True, return_tensors="pt")).logits
    bare = BareEnvironment(tmp_path / "bare")
    bare.add(ALLOWED)
    assert bare.holds(*ALLOWED, *ABSENT) == list(ALLOWED)
    ran = bare.run(SCRIPT, tmp_path / "zeroed", *TEXTS, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    assert answer["class"] == "transformers.models.bert.modeling_bert"
    torch.testing.assert_close(torch.tensor(answer["logits"]), wanted, rtol=0, atol=1e-5)

"""The stock form serves where stock PyTorch and transformers are, and this package is not, and is as small as it says.

The environment is a virtual one of its own, into which the installed files of transformers, PyTorch and what these need are
linked; Python runs there with ``-I``, so that neither the source tree nor a path from outside is seen.
"""

import json
from pathlib import Path

import pytest
import torch

from axformer.forms.form import Form
from axformer.forms.kinds import STOCK
from axformer.forms.make import Finished, make_forms
from axformer.model.compact import compact
from axformer.plan.plan import Plan
from tests.family_cases import Case, checkpoint_of, data_of
from tests.integration.bare_environment import BareEnvironment
from tests.tiny_families import DIMENSIONS

ALLOWED = ("torch", "transformers", "safetensors")
ABSENT = ("axformer", "store", "api", "worker", "fastapi", "celery", "sqlalchemy", "onnxruntime", "pytest")
TEXTS = ["word1 word2 word3", "word4", "word5 word6 word7 word8 word9 word10 word11"]
DROPPED = (1, 3)
FAMILIES = ("albert", "bert", "llama", "modernbert")
SCRIPT = """
import json, sys
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
place, *texts = sys.argv[1:]
answers = {}
for path in place.split(","):
    model, tokenizer = AutoModelForSequenceClassification.from_pretrained(path), AutoTokenizer.from_pretrained(path)
    with torch.inference_mode():
        logits = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits
    sizes = model.config.num_hidden_layers, sum(weight.numel() for weight in model.parameters())
    answers[model.config.model_type] = {"class": type(model).__module__, "sizes": sizes, "logits": logits.tolist()}
print(json.dumps(answers))
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_it_serves_alone(tmp_path: Path) -> None:
    plan, wanted = Plan.full(DIMENSIONS).dropping(DROPPED), {}
    for family in FAMILIES:
        checkpoint = checkpoint_of(Case(family, "classification"))
        small = compact(checkpoint.model, checkpoint.architecture, plan)
        samples = data_of(Case(family, "classification")).samples
        forms = make_forms(Finished(checkpoint, plan, small, samples), [STOCK], tmp_path / family)
        assert all(isinstance(form, Form) for form in forms)
        with torch.inference_mode():
            wanted[family] = small(**checkpoint.tokenizer(TEXTS, padding=True, return_tensors="pt")).logits
    bare = BareEnvironment(tmp_path / "bare")
    bare.add(ALLOWED)
    assert bare.holds(*ALLOWED, *ABSENT) == list(ALLOWED)
    places = ",".join(str(tmp_path / family / "stock") for family in FAMILIES)
    ran = bare.run(SCRIPT, places, *TEXTS, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    answers = json.loads(ran.stdout)
    for family in FAMILIES:
        answer, whole = answers[family], checkpoint_of(Case(family, "classification")).model
        assert answer["class"] == f"transformers.models.{family}.modeling_{family}"
        layers, parameters = answer["sizes"]
        assert layers == DIMENSIONS.layers - len(DROPPED)
        assert (parameters == whole.num_parameters()) == (family == "albert"), "ALBERT's layers share their weights"
        torch.testing.assert_close(torch.tensor(answer["logits"]), wanted[family], rtol=0, atol=1e-5)

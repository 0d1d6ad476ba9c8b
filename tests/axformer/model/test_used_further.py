"""What is done with a finished model afterwards: it is pickled, adapted, and saved by other versions."""

import io
import pickle
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import AutoModelForSequenceClassification

import axformer.auto  # noqa: F401 - registers the compact models
from axformer.model import compact as module
from axformer.model.compact import compact
from axformer.plan.plan import Plan
from tests.family_cases import Case, all_cases, checkpoint_of, data_of, some_plan
from tests.tiny_families import DIMENSIONS

UNEVEN = Plan(layers=tuple(layer.model_copy(update={"heads": (0, 1, 3)}) for layer in Plan.full(DIMENSIONS).layers))
uneven_families = pytest.mark.parametrize("family", ["llama", "qwen3"])


def made(case: Case, plan: Plan) -> tuple[Any, dict[str, torch.Tensor]]:
    checkpoint = checkpoint_of(case)
    return compact(checkpoint.model, checkpoint.architecture, plan), data_of(case).samples.batches[0].inputs


@torch.no_grad()
def logits(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    output = model(**inputs)
    found: torch.Tensor = output["logits" if "logits" in output else "start_logits"]
    return found


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_it_is_pickled_as_a_whole(case: Case) -> None:
    model, inputs = made(case, some_plan(3))
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for copy in (torch.load(file, weights_only=False), pickle.loads(pickle.dumps(model)), deepcopy(model)):
        assert type(copy) is type(model)
        assert torch.equal(logits(copy, inputs), logits(model, inputs))


PROGRAM = """
import sys, torch
for path in sys.argv[1:]:
    model, inputs, expected = torch.load(path, weights_only=False)
    assert torch.allclose(model(**inputs).logits, expected, atol=1e-6)
"""


@pytest.mark.slow
def test_another_process_takes_it_without_importing_anything_first(tmp_path: Path) -> None:
    """As processes of a pool do, and Ray, Spark and joblib."""
    for family in ("bert", "llama", "xlnet"):
        model, inputs = made(Case(family, "classification"), some_plan(3))
        torch.save((model, inputs, logits(model, inputs)), tmp_path / family)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *tmp_path.iterdir()], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_a_name_that_is_no_class_of_compact_models_is_none() -> None:
    assert module.CompactBertModel.__name__ == "CompactBertModel"
    for name in ("CompactNobody", "Nobody"):
        with pytest.raises(AttributeError, match=name):
            getattr(module, name)


@uneven_families
def test_projections_of_uneven_heads_are_those_of_the_family(family: str) -> None:
    """By type and by name: adapters, quantizers and converters look for these."""
    case = Case(family, "classification")
    (model, inputs), whole = made(case, UNEVEN), checkpoint_of(case).model
    assert model.state_dict().keys() == whole.state_dict().keys()
    types = {name: type(part) for name, part in whole.named_modules() if isinstance(part, nn.Linear)}
    assert {name: type(part) for name, part in model.named_modules() if isinstance(part, nn.Linear)} == types
    before = logits(model, inputs)
    for layer in model.model.layers:  # what an adapter does: the projection inside of another module
        layer.self_attn.v_proj = Adapted(layer.self_attn.v_proj)
    torch.testing.assert_close(logits(model, inputs), before)
    with torch.no_grad():
        model.model.layers[0].self_attn.v_proj.more.weight += 0.5
    assert not torch.allclose(logits(model, inputs), before)


class Adapted(nn.Module):
    """A projection with a second one beside it, as large, which adds nothing yet."""

    def __init__(self, own: nn.Linear) -> None:
        super().__init__()
        self.own, self.more = own, nn.Linear(own.in_features, own.out_features, bias=False)
        nn.init.zeros_(self.more.weight)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.own(hidden) + self.more(hidden)


@uneven_families
def test_results_of_earlier_versions_load(tmp_path: Path, family: str) -> None:
    model, inputs = made(Case(family, "classification"), UNEVEN)
    model.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    weights = {
        name.replace("k_proj.", "k_proj.projection.").replace("v_proj.", "v_proj.projection."): values
        for name, values in load_file(path).items()
    }
    save_file(weights, path, {"format": "pt"})
    older = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    assert torch.equal(logits(older, inputs), logits(model, inputs))
    older.save_pretrained(tmp_path / "again")
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "again").eval()
    assert torch.equal(logits(again, inputs), logits(model, inputs))

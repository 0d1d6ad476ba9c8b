"""``axformer apply`` trains what a plan leaves: the commands of docs/rank.md that make a super-ticket, on tiny models."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM

import axformer
from axformer.plan.plan import read_plan_file
from tests.axformer.cli.test_cli import invoke
from tests.documents import ROOT, commands_in
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_head, tiny_rows, tiny_tokenizer, write_rows

LABELS = ("no", "yes")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the documented commands name, in the working directory."""
    config = tiny_config()
    config.id2label, config.label2id = dict(enumerate(LABELS)), {name: index for index, name in enumerate(LABELS)}
    save_tiny_checkpoint(tmp_path / "fine-tuned", config)
    tiny_head(AutoModelForMaskedLM, tiny_config(), seed=5).save_pretrained(tmp_path / "bert-base")
    tiny_tokenizer().save_pretrained(tmp_path / "bert-base")
    for seed, part in enumerate(("train", "validation", "test")):
        rows: list[dict[str, Any]] = tiny_rows(24, seed=seed)
        write_rows(tmp_path / f"{part}.jsonl", [row | {"label": LABELS[row["label"]]} for row in rows])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def documented() -> list[list[str]]:
    section = (ROOT / "docs" / "rank.md").read_text(encoding="utf-8").partition("## Super-tickets")[2]
    return [words[1:] for words in commands_in(section.partition("```sh\n")[2].partition("```")[0])]


@pytest.mark.slow
def test_the_documented_commands_make_a_super_ticket(home: Path) -> None:
    prune, apply, *answers, certify = documented()
    assert invoke(*prune, "--accept-poor-model", "--forms", "compact").exit_code == 0
    applied = invoke(*apply, "--finetune", "epochs=1")
    assert applied.exit_code == 0, applied.stderr
    assert [invoke(*one).exit_code for one in answers] == [0, 0]
    assert invoke(*certify).exit_code in (0, 1), "a tiny ticket may lose more, but it is measured"
    ranked, ticket = read_plan_file(home / "ranked"), read_plan_file(home / "ticket")
    assert (ticket.plan, ticket.trained) == (ranked.plan, True)
    model = axformer.load(home / "ticket")
    assert model.config.id2label == dict(enumerate(LABELS))
    assert not list(home.glob(".ticket-training"))
    again = invoke(*[*apply[:-1], "again"], "--finetune", "epochs=1")
    assert again.exit_code == 0
    weights = axformer.load(home / "again").state_dict()
    assert all(torch.equal(weights[name], weight) for name, weight in model.state_dict().items())
    base = json.loads((home / "ticket" / "plan.json").read_text())["source"]["sha256"]
    assert base != ranked.source.sha256, "the plan is of the base model now"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--head", "classification=no,yes"), "give --train too"),
        (("--finetune", "epochs=1"), "give --train too"),
        (
            ("--head", "classification=no,yes", "--train", "train.jsonl", "--finetune", "teacher=true"),
            "an untrained head teaches nothing",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused(home: Path, more: tuple[str, ...], message: str) -> None:
    prune, *_ = documented()
    invoke(*prune, "--accept-poor-model", "--forms", "compact")
    refused = invoke(
        "apply", "ranked", "bert-base", "--other-weights", "--data", "validation.jsonl", "--output", "ticket", *more
    )
    assert refused.exit_code == 2
    assert message in refused.stderr
    assert not (home / "ticket").exists()

"""Tiny real models and data: random weights, hidden size 32, made in milliseconds."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizer, PreTrainedConfig

from axformer.architectures.hard_attention import ATTENTION_NAME

WORDS = [f"word{index}" for index in range(60)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MAX_TOKENS = 128


def tiny_config(*, layers: int = 3, heads: int = 4, labels: int = 2, hidden: int = 32, inner: int = 48) -> BertConfig:
    """A BERT of a few thousand parameters."""
    return BertConfig(
        vocab_size=len(SPECIAL) + len(WORDS),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        max_position_embeddings=MAX_TOKENS,
        num_labels=labels,
        initializer_range=0.3,
    )


def tiny_model(config: BertConfig | None = None, seed: int = 0) -> BertForSequenceClassification:
    """A model with random weights, in evaluation mode, with hard attention available."""
    torch.manual_seed(seed)
    model = BertForSequenceClassification(config or tiny_config()).eval()
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(
                parameter, mean=float(parameter.detach().mean()), std=0.1
            )  # biases and norms that matter
    model.config._attn_implementation = ATTENTION_NAME
    return model


def tiny_tokenizer() -> BertTokenizer:
    """A tokenizer that knows the words of the tiny data."""
    vocabulary = {token: index for index, token in enumerate(SPECIAL + WORDS)}
    return BertTokenizer(vocab=vocabulary, model_max_length=MAX_TOKENS)


def save_tiny_checkpoint(directory: Path, config: BertConfig | None = None, seed: int = 0) -> Path:
    """A checkpoint as ``save_pretrained`` writes it."""
    model = tiny_model(config, seed)
    model.save_pretrained(directory)
    tiny_tokenizer().save_pretrained(directory)
    return directory


def save_tiny_embedder(directory: Path) -> Path:
    """A directory as sentence-transformers writes it, with prompts; it lies in ``directory``."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    save_tiny_checkpoint(directory / "bert")
    chain = [modules.Transformer(str(directory / "bert"), max_seq_length=20)]
    chain += [modules.Pooling(32, pooling_mode=("mean", "cls")), modules.Normalize()]
    prompts = {"query": "word1 word2 ", "document": "word3 ", "all": "word4 "}
    made = SentenceTransformer(modules=chain, device="cpu", prompts=prompts, default_prompt_name="all", truncate_dim=48)
    made.save(str(directory / "made"), create_model_card=False)
    return directory / "made"


def tiny_rows(count: int, *, pairs: bool = False, labels: int = 2, seed: int = 0) -> list[dict[str, object]]:
    """Records with texts of 1 to 12 words; one label makes it a regression."""
    chance = random.Random(seed)
    rows: list[dict[str, object]] = []
    for index in range(count):
        label: object = chance.uniform(0, 5) if labels == 1 else index % labels
        row: dict[str, object] = {"text": _words(chance), "label": label}
        rows.append({**row, "text_pair": _words(chance)} if pairs else row)
    return rows


def write_rows(path: Path, rows: list[dict[str, object]]) -> Path:
    """Records as JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _words(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(1, 12)))


def tiny_head(auto_class: Any, config: PreTrainedConfig, seed: int = 0) -> Any:
    """A model with random weights and the head that an Auto class puts on, in evaluation mode."""
    torch.manual_seed(seed)
    return auto_class.from_config(config).eval()


def tagged_rows(count: int, tags: list[str], seed: int = 0) -> list[dict[str, object]]:
    """Records for token classification, of 1 to 12 words."""
    chance = random.Random(seed)
    words = [_words(chance).split() for _ in range(count)]
    return [{"tokens": row, "tags": chance.choices(tags, k=len(row))} for row in words]


def question_rows(count: int, *, words: int = 30, seed: int = 0) -> list[dict[str, object]]:
    """Records for question answering whose answer is one to three words of a context of some length."""
    chance = random.Random(seed)
    rows: list[dict[str, object]] = []
    for _ in range(count):
        context = chance.choices(WORDS, k=words)
        first = chance.randrange(words - 3)
        answer = " ".join(context[first : first + chance.randint(1, 3)])
        start = len(" ".join([*context[:first], ""]))
        record = {"text": [answer], "answer_start": [start]}
        rows.append({"question": " ".join(chance.choices(WORDS, k=4)), "context": " ".join(context), "answers": record})
    return rows


def choice_rows(count: int, *, choices: int = 3, seed: int = 0) -> list[dict[str, object]]:
    """Records for multiple choice."""
    chance = random.Random(seed)
    return [
        {"text": _words(chance), "choices": [_words(chance) for _ in range(choices)], "label": index % choices}
        for index in range(count)
    ]


def list_rows(count: int, *, seed: int = 0) -> list[dict[str, object]]:
    """Records for reranking, of 2 to 5 passages."""
    chance = random.Random(seed)
    rows: list[dict[str, object]] = []
    for _ in range(count):
        passages = [_words(chance) for _ in range(chance.randint(2, 5))]
        rows.append({"query": _words(chance), "passages": passages, "label": chance.randrange(len(passages))})
    return rows


def multi_label_rows(count: int, *, labels: int = 3, seed: int = 0) -> list[dict[str, object]]:
    """Records with any number of labels each."""
    chance = random.Random(seed)
    return [
        {"text": _words(chance), "labels": [label for label in range(labels) if chance.random() < 0.5]}
        for _ in range(count)
    ]


def answering_model(labels: int) -> BertForSequenceClassification:
    """A model that gives every class, and is sure of it: with its own answers for labels it is a good one."""
    model, texts = tiny_model(tiny_config(labels=labels)), [row["text"] for row in tiny_rows(200)]
    with torch.no_grad():
        logits = model(**tiny_tokenizer()(texts, padding=True, return_tensors="pt")).logits
        scale = _SURE / logits.std(dim=0)
        model.classifier.weight *= scale[:, None]
        model.classifier.bias.copy_((model.classifier.bias - logits.mean(dim=0)) * scale)
    return model


def answered_rows(model: Any, count: int, order: Sequence[int]) -> list[dict[str, object]]:
    """Records whose label is the model's own answer, with ``order[answer]`` in the place of each."""
    texts = [row["text"] for row in tiny_rows(count)]
    with torch.no_grad():
        answers = model(**tiny_tokenizer()(texts, padding=True, return_tensors="pt")).logits.argmax(-1).tolist()
    return [{"text": text, "label": order[answer]} for text, answer in zip(texts, answers, strict=True)]


_SURE = 5.0
"""How far logits of such a model spread."""

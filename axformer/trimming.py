"""A checkpoint without the tokens that its texts never have: a smaller matrix of embeddings, and nothing else changed.

In models of many languages this matrix is most of the file. Tokens that no text of the kept scripts can have go without any
change of an answer (:mod:`axformer.intake.vocabulary`); so do those that given texts do not have, for these texts.
"""

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from axformer.answering import has_answers
from axformer.architectures.embedder import spec_of
from axformer.artifact import check_target, new_directory
from axformer.data.columns import DataSource
from axformer.data.encoding import Encoded
from axformer.data.reading import read_rows
from axformer.errors import ArtifactError, CheckpointError, ConfigError
from axformer.forms.files import write_model
from axformer.forms.stock import stock
from axformer.intake.checkpoint import Checkpoint, load_checkpoint
from axformer.intake.dataset import cutting_config, prepare_inputs
from axformer.intake.names import TOKENIZER, TOKENIZER_CONFIG, TOKENIZER_TABLES
from axformer.intake.vocabulary import Vocabulary, characters_of
from axformer.model.number_format import cast
from axformer.plan.plan import Plan

_ASCII = "".join(map(chr, range(128)))
_TEXTS, _WORDS, _PROMPTED = 32, 40, 2
"""Texts of kept tokens on which both models are compared, tokens of each, and those that are compared behind every prompt."""
_IDS = "_token_id"
"""The end of a key of ``config.json`` that names a token."""


@dataclass(frozen=True)
class Trimmed:
    """What became of a vocabulary and of the weight files, which hold its embeddings."""

    tokens_before: int
    tokens: int
    bytes_before: int
    bytes: int
    rows: int | None
    """Texts whose tokens all stay; None where scripts alone say what stays."""
    unseen: float | None
    """About which share of new texts like these has a token that went: of the given texts, those with a token that no other one
    has."""
    has_answers: bool
    """Whether the model has one right answer a row, so that two of them can be compared by their answers."""


def trim(
    reference: str | Path,
    output: Path,
    scripts: Sequence[str] = (),
    data: DataSource | None = None,
    tokens: int = 0,
) -> Trimmed:
    """Write a checkpoint with fewer tokens into a directory.

    Args:
        reference: a local directory, or ``hf://organisation/name``.
        output: must not exist, or be empty.
        scripts: those whose texts keep every token, as Unicode calls them; accents, digits and punctuation always stay.
        data: texts whose tokens stay, with every single character of theirs, of ASCII and of the scripts; None where scripts
            alone say what stays.
        tokens: with ``data``, about how many stay at least: the first of the vocabulary, which are its most common ones.

    Raises:
        InputError: the checkpoint, its tokenizer or the data do not fit, or the directory is not empty.
        ArtifactError: the written checkpoint does not answer as before.
    """
    if not scripts and data is None:
        raise ConfigError(
            "nothing says which tokens stay; give --scripts, for example Latin, or texts by --data", "scripts"
        )
    if tokens and data is None:
        raise ConfigError(
            f"--tokens {tokens} goes with --data, whose tokens stay too; texts of scripts keep all they can have"
        )
    check_target(output)
    checkpoint = _trimmable(reference)
    config = checkpoint.model.config
    table = json.loads(checkpoint.companions.files[TOKENIZER])
    vocabulary = Vocabulary.of(table, _named_ids(config).values(), config.pad_token_id)
    prompts = _prompts(config)
    characters = {*"".join(prompts), *(characters_of(scripts) if scripts else ())}
    before = len(vocabulary.tokens), checkpoint.bytes
    if data is None:
        kept = vocabulary.written_with(characters)
        made = _written(checkpoint, vocabulary, kept, None, output)
        return Trimmed(before[0], len(kept), before[1], made.bytes, None, None, has_answers(checkpoint.task))
    rows = read_rows(data.path, data.columns.without_answers())
    checkpoint = checkpoint.for_rows(rows, is_labelled=False)
    encoded = prepare_inputs(None, rows, checkpoint, cutting_config(checkpoint)).samples.encoded
    seen = {one for row in encoded.features["input_ids"] for one in _flat(row)}
    written = [str(value) for column in rows.table.values() for value in column]
    prompted = [prompt + text for prompt in prompts for text in written]
    seen.update(*(checkpoint.tokenizer(prompted)["input_ids"] if prompted else ()))
    kept = vocabulary.used({*seen, *range(tokens)}, (*characters, _ASCII, *written))
    unseen = _unseen(encoded, vocabulary.used(range(tokens), (*characters, _ASCII)))
    made = _written(checkpoint, vocabulary, kept, encoded, output)
    return Trimmed(before[0], len(kept), before[1], made.bytes, encoded.samples, unseen, has_answers(checkpoint.task))


def _trimmable(reference: str | Path) -> Checkpoint:
    """A checkpoint whose vocabulary can be made smaller."""
    checkpoint = load_checkpoint(reference)
    if checkpoint.model.get_output_embeddings() is not None:
        raise CheckpointError("a language model answers with tokens of its vocabulary, which would be others")
    if TOKENIZER not in checkpoint.companions.files:
        raise CheckpointError(
            f"'{reference}' has no {TOKENIZER}, in which tokens can be left out; save it with a fast tokenizer"
        )
    return checkpoint


def _written(
    checkpoint: Checkpoint, vocabulary: Vocabulary, kept: set[int], encoded: Encoded | None, output: Path
) -> Checkpoint:
    """Write the checkpoint with the kept tokens alone, and read it again; its model is the smaller one afterwards."""
    texts = _texts(checkpoint, encoded, kept)
    if not texts:
        raise ArtifactError(
            "no text has kept tokens alone, so nothing shows that answers stay; keep the whole checkpoint"
        )
    expected = _answers(checkpoint, texts)
    smaller = _smaller(checkpoint, *vocabulary.only(kept))
    with new_directory(output) as draft:
        write_model(cast(smaller.model, checkpoint.dtype), smaller.companions, draft)
        made = load_checkpoint(draft)
        if not all(map(_agree, expected, _answers(made, texts))):
            raise ArtifactError(
                "the checkpoint with fewer tokens does not answer as before; keep the whole one, and report it"
            )
    return made


def _prompts(config: Any) -> list[str]:
    """What an embedder may be given before a text."""
    spec = spec_of(config)
    return [] if spec is None else [prompt for prompt in spec.prompts.values() if prompt]


def _flat(row: Any) -> Iterable[int]:
    """The ids of a model row, of all choices where it has several."""
    return (one for choice in row for one in choice) if row and isinstance(row[0], list) else row


def _unseen(encoded: Encoded, always: set[int]) -> float:
    """The share of inputs with a token that no other one has and that does not stay anyway."""
    of_input: dict[int, set[int]] = {}
    for row, ids in enumerate(encoded.features["input_ids"]):
        of_input.setdefault(encoded.inputs[encoded.sample_of_row[row]], set()).update(_flat(ids))
    counts = Counter(one for ids in of_input.values() for one in ids - always)
    return sum(any(counts[one] == 1 for one in ids - always) for ids in of_input.values()) / len(of_input)


def _texts(checkpoint: Checkpoint, encoded: Encoded | None, kept: set[int]) -> list[str]:
    """Texts on which both models are compared: given ones, or rows of kept tokens whose own tokens are kept."""
    draw = random.Random(0)  # noqa: S311 - no secret
    if encoded is not None:
        rows = [list(_flat(row)) for row in encoded.features["input_ids"]]
        chosen = draw.sample(rows, min(_TEXTS, len(rows)))
    else:
        chosen = [draw.choices(sorted(kept), k=_WORDS) for _ in range(_TEXTS)]
    texts = [checkpoint.tokenizer.decode(ids, skip_special_tokens=True) for ids in chosen]
    texts += [prompt + text for prompt in _prompts(checkpoint.model.config) for text in texts[:_PROMPTED]]
    return [text for text in texts if set(checkpoint.tokenizer(text)["input_ids"]) <= kept]


def _agree(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two outputs differ by rounding at most, which may depend on where in memory the weights lie."""
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def _answers(checkpoint: Checkpoint, texts: Sequence[str]) -> list[torch.Tensor]:
    """What a model gives back for each text."""
    limit = checkpoint.architecture.max_tokens(checkpoint.model.config)
    found = []
    for text in texts:
        inputs = checkpoint.tokenizer(text, return_tensors="pt", truncation=limit is not None, max_length=limit)
        found.append(checkpoint.model(**inputs)[0])
    return found


def _named_ids(config: Any) -> dict[str, int]:
    """The keys of a configuration that name a token, with its id."""
    return {name: place for name, place in config.to_dict().items() if name.endswith(_IDS) and isinstance(place, int)}


def _smaller(checkpoint: Checkpoint, table: dict[str, Any], new: dict[int, int]) -> Checkpoint:
    """The checkpoint with another vocabulary, as a model of its family."""
    model, architecture = checkpoint.model, checkpoint.architecture
    whole = model.get_input_embeddings()
    if max(new) >= len(whole.weight):
        raise CheckpointError(
            f"its tokenizer has tokens up to {max(new)}, the model embeds {len(whole.weight)} of them"
        )
    weight = whole.weight.detach()[sorted(new)].clone()
    padding = None if whole.padding_idx is None else new[whole.padding_idx]
    embeddings = nn.Embedding(len(weight), weight.shape[1], padding)
    embeddings.weight.data = weight
    model.set_input_embeddings(embeddings)
    model.config.vocab_size = len(new)
    for name, place in _named_ids(model.config).items():
        setattr(model.config, name, new.get(place))
    ordinary = stock(model, checkpoint.head.model_class, architecture, Plan.full(checkpoint.dimensions))
    files = {name: content for name, content in checkpoint.companions.files.items() if name not in TOKENIZER_TABLES}
    settings = json.loads(files[TOKENIZER_CONFIG])
    if "added_tokens_decoder" in settings:
        decoder = settings["added_tokens_decoder"]
        settings["added_tokens_decoder"] = {
            str(new[int(place)]): one for place, one in decoder.items() if int(place) in new
        }
    files |= {
        TOKENIZER: json.dumps(table, ensure_ascii=False).encode(),
        TOKENIZER_CONFIG: json.dumps(settings).encode(),
    }
    return replace(checkpoint, model=ordinary, companions=replace(checkpoint.companions, files=files))

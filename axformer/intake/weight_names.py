"""The names of weights in a file against those of the model that reads them.

Wrappers leave their names in weights that are saved through them: ``module.`` of data parallelism, ``_orig_mod.`` of
``torch.compile``, ``model.`` of a module of one's own. They are taken off. A weight that nothing reads after that means that
the model computes something else than the one that was trained, unless it is known to be a leftover.
"""

import re
from collections.abc import Collection, Iterator

_WRAPPERS = {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module"}
"""Parts of a name that no model has: of ``DataParallel``, ``torch.compile``, FSDP, activation checkpoints and DeepSpeed."""
_AROUND = {"base_model", "model", "_model", "net", "network"}
"""First parts of a name that a model may have itself, or a module around it: of PEFT, Lightning and people's own."""

_BUFFERS = (
    r"(^|\.)position_ids$",  # were saved until transformers 4.31
    r"(^|\.)embeddings\.token_type_ids$",
    r"(^|\.)attn\.(bias|masked_bias)$",  # GPT-2's masks
    r"(^|\.)rotary_emb\.(\w+_)?inv_freq$",  # Llama's, one a layer
)
"""What models compute from their configuration and once saved as well."""
_POOLERS = (r"(^|\.)pooler\.",)
"""A layer over the first token, which came with the pre-trained model and which heads that do not pool leave out."""
_SENTENCE_ORDER = (r"^cls\.seq_relationship\.", r"^sop_classifier\.", r"^(deberta\.)?mask_predictions\.")
"""Heads beside the language model's in pre-training: BERT's, ALBERT's, DeBERTa's."""
_LOSSES = (r"^(loss|loss_fct|loss_fn|criterion)\.(weight|pos_weight)$", r"^class_weights?$")
"""Weights of classes in the loss of a training loop."""
_LANGUAGE_MODELS = (
    r"^cls\.predictions\.",  # BERT, DeBERTa
    r"^(lm_head|lm_loss|lm_predictions)\.",  # RoBERTa and its kin, MPNet, GPT-2, Llama; XLNet; DeBERTa
    r"^predictions\.",  # ALBERT
    r"^(generator_predictions|generator_lm_head|discriminator_predictions)\.",  # ELECTRA
    r"^vocab_(transform|layer_norm|projector)\.",  # DistilBERT
    r"^decoder\.(weight|bias)$",  # ModernBERT
)
"""Heads that a pre-trained model had before it was given another."""
_LEFTOVERS = re.compile("|".join((*_BUFFERS, *_POOLERS, *_SENTENCE_ORDER, *_LOSSES)))
_OTHER_HEADS = re.compile("|".join(_LANGUAGE_MODELS))


def unread(names: Collection[str], *, is_language_model: bool) -> list[str]:
    """Those of the weights without a place in a model that are no known leftovers, in order.

    Args:
        names: the weights that the model has no place for.
        is_language_model: whether the model has such a head itself; another weight of one is not a leftover then.
    """
    known = _LEFTOVERS.search, lambda name: None if is_language_model else _OTHER_HEADS.search(name)
    return sorted(name for name in names if not any(search(name) for search in known))


def unwrapped(names: Collection[str], own: Collection[str], base: str) -> dict[str, str]:
    """Each weight's name without what wrappers put before it.

    Args:
        names: the names in the files.
        own: the names in the model.
        base: what the model without its head is called in there; files may leave it out.

    Raises:
        ValueError: two weights would have the same name.
    """
    plain = {name: ".".join(part for part in name.split(".") if part not in _WRAPPERS) for name in names}
    known = {*own, *(name.removeprefix(f"{base}.") for name in own)}
    prefixes = sorted({prefix for name in plain.values() for prefix in _prefixes(name)}, key=len)
    around = max(
        prefixes, key=lambda prefix: len(known & {name.removeprefix(prefix) for name in plain.values()}), default=""
    )
    shortened = {name: short.removeprefix(around) for name, short in plain.items()}
    _check_unlike(shortened, set(own), base)
    return shortened


def place_of(name: str, base: str, own: Collection[str]) -> str | None:
    """Which of a model's own weights a name of a file means, as it is or without ``base``; None if it means none."""
    return next((candidate for candidate in (name, f"{base}.{name}") if candidate in own), None)


def prefix_of(missing: str, names: Collection[str]) -> str | None:
    """What stands before a weight's name in the files, where it is there under a longer one."""
    return next((name.removesuffix(missing) for name in sorted(names) if name.endswith(f".{missing}")), None)


def _prefixes(name: str) -> Iterator[str]:
    prefix = ""
    yield prefix
    for part in name.split("."):
        if part not in _AROUND:
            return
        prefix += f"{part}."
        yield prefix


def _check_unlike(shortened: dict[str, str], own: set[str], base: str) -> None:
    taken: dict[str, str] = {}
    for name, short in shortened.items():
        other = taken.setdefault(place_of(short, base, own) or short, name)
        if other != name:
            raise ValueError(f"weights {other} and {name} are both {short}")

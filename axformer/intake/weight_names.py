"""Match the names of weights in a file with those of the model.

Wrappers add prefixes to weights that are saved through them: ``module.`` from data parallelism, ``_orig_mod.`` from
``torch.compile``, ``model.`` from a user's module. These are removed. If a weight is still unused then, the model computes
something other than the trained one, unless the weight is a known leftover.
"""

import re
from collections.abc import Collection, Iterator

_WRAPPERS = {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module"}
"""Prefixes that no model has itself: ``DataParallel``, ``torch.compile``, FSDP, activation checkpointing, DeepSpeed."""
_AROUND = {"base_model", "model", "_model", "net", "network"}
"""Prefixes that a model or a module around it may have: PEFT, Lightning, and users' modules."""

_BUFFERS = (
    r"(^|\.)position_ids$",  # were saved until transformers 4.31
    r"(^|\.)embeddings\.token_type_ids$",
    r"(^|\.)attn\.(bias|masked_bias)$",  # GPT-2's masks
    r"(^|\.)rotary_emb\.(\w+_)?inv_freq$",  # Llama's, one a layer
)
"""Buffers that models compute from their config but used to save."""
_POOLERS = (r"(^|\.)pooler\.",)
"""The pre-trained pooler, which heads that do not pool leave out."""
_SENTENCE_ORDER = (r"^cls\.seq_relationship\.", r"^sop_classifier\.", r"^(deberta\.)?mask_predictions\.")
"""Additional pre-training heads of BERT, ALBERT and DeBERTa."""
_LOSSES = (r"^(loss|loss_fct|loss_fn|criterion)\.(weight|pos_weight)$", r"^class_weights?$")
"""Class weights of a training loop's loss."""
_LANGUAGE_MODELS = (
    r"^cls\.predictions\.",  # BERT, DeBERTa
    r"^(lm_head|lm_loss|lm_predictions)\.",  # RoBERTa and its kin, MPNet, GPT-2, Llama; XLNet; DeBERTa
    r"^predictions\.",  # ALBERT
    r"^(generator_predictions|generator_lm_head|discriminator_predictions)\.",  # ELECTRA
    r"^vocab_(transform|layer_norm|projector)\.",  # DistilBERT
    r"^decoder\.(weight|bias)$",  # ModernBERT
)
"""Pre-training heads that fine-tuning replaced."""
_LEFTOVERS = re.compile("|".join((*_BUFFERS, *_POOLERS, *_SENTENCE_ORDER, *_LOSSES)))
_OTHER_HEADS = re.compile("|".join(_LANGUAGE_MODELS))


def unread(names: Collection[str], *, is_language_model: bool) -> list[str]:
    """The weights that a model does not use and that are not known leftovers, in order.

    Args:
        is_language_model: whether the model has a language model head; other weights of such a head are then not leftovers.
    """
    known = _LEFTOVERS.search, lambda name: None if is_language_model else _OTHER_HEADS.search(name)
    return sorted(name for name in names if not any(search(name) for search in known))


def unwrapped(names: Collection[str], own: Collection[str], base: str) -> dict[str, str]:
    """Each weight's name without the prefixes of wrappers.

    Args:
        names: the names in the files.
        own: the names in the model.
        base: the prefix of the model without its head; files may omit it.

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
    """The model's weight that a name in a file refers to, with or without ``base``; None if there is none."""
    return next((candidate for candidate in (name, f"{base}.{name}") if candidate in own), None)


def prefix_of(missing: str, names: Collection[str]) -> str | None:
    """The prefix of a weight's name in the files, if it is there under a longer name."""
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

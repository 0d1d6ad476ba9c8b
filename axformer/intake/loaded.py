"""Check what transformers reports about loaded weights: all of the model's were found, and no others matter."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from axformer.errors import CheckpointError
from axformer.intake.admission import Admitted
from axformer.intake.new_head import is_new
from axformer.intake.partial_weights import some
from axformer.intake.weight_names import prefix_of, unread

_LANGUAGE_MODELS = (AutoModelForCausalLM, AutoModelForMaskedLM)


def check_loaded(admitted: Admitted, info: Mapping[str, Any], base: str) -> None:
    """Compare the weights that a model needs with those in the files.

    Args:
        info: the ``output_loading_info`` of ``from_pretrained``.
        base: the prefix of the model without its head.

    Raises:
        CheckpointError: some are missing, have another shape, or are not used; the message names them.
    """
    missing, foreign = sorted(info["missing_keys"]), sorted(info["mismatched_keys"])
    if admitted.new_head is not None:
        if not missing:
            raise CheckpointError(
                f"checkpoint '{admitted.directory}' holds all weights of {admitted.head.name}, so it has such a head already; "
                "leave the new head out"
            )
        missing = [name for name in missing if not is_new(name, base)]
    said = f"checkpoint '{admitted.directory}' does not hold all weights of {admitted.head.name}"
    if missing:
        raise CheckpointError(f"{said}: missing: {some(missing)}; {_remedy(missing, admitted.weights.tensors)}")
    if foreign:
        shapes = [f"{name} ({_shown(there)} instead of {_shown(wanted)})" for name, there, wanted in foreign]
        raise CheckpointError(
            f"{said}: of another shape: {some(shapes)}; correct config.json, which describes another model than the files hold"
        )
    idle = unread(info["unexpected_keys"], is_language_model=admitted.head.auto_class in _LANGUAGE_MODELS)
    if idle:
        raise CheckpointError(
            f"checkpoint '{admitted.directory}' holds weights that a {admitted.head.name} does not read: {some(idle)}; correct "
            "config.json if it describes another model than was trained, or load the model with its own class and save it again"
        )


def _remedy(missing: Collection[str], names: Collection[str]) -> str:
    prefix = next((found for name in missing if (found := prefix_of(name, names))), None)
    if prefix is None:
        return "correct config.json if it describes another model than was trained, else save the model again"
    return (
        f"they are there with '{prefix}' before their names; take it off: save_file({{name.removeprefix('{prefix}'): weight "
        "for name, weight in load_file(FILE).items()}, FILE, {'format': 'pt'}), both of safetensors.torch"
    )


def _shown(shape: Iterable[int]) -> str:
    return " x ".join(map(str, shape)) or "one number"

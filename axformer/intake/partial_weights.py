"""Recognise incomplete weights by their names and sizes: adapters, shards, quantized numbers.

Otherwise they would be reported as missing weights, with advice that does not help.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from axformer.errors import CheckpointError
from axformer.intake.foreign import MERGE
from axformer.intake.headers import Tensor

_SHOWN = 3
"""Names that a message shows."""
_ADAPTER = re.compile(
    r"(^|\.)(lora_\w+|base_layer|modules_to_save|original_module|ia3_l|hada_\w+|lokr_\w+|oft_\w+|boft_\w+|vera_lambda_\w+|"
    r"adapters|prompt_encoder|prefix_encoder|prompt_tuning)\.|\.(lora_embedding_[AB]|lora_magnitude_vector|ia3_l\.\w+)|"
    r"^prompt_embeddings$"
)
"""Names that adapter libraries give to their own modules and to the modules that they wrap."""
_QUANTIZED = re.compile(
    r"\.(SCB|CB|weight_format|qweight|qzeros|scales|g_idx|absmax|quant_map|nested_absmax|quant_state\..*|weight_scale|"
    r"weight_scale_inv|weight_packed|weight_zero_point|input_scale|_packed_params.*)$"
)
"""Names of tensors that quantization methods store besides the weights."""
_FLAT = re.compile(r"(^|\.)_?flat_param(_\d+)?$")
"""FSDP's name for flattened weights."""
FLOATS = {"F64", "F32", "F16", "BF16"}
"""Types of unquantized weights."""


def check_whole(directory: Path, tensors: Mapping[str, Tensor]) -> None:
    """Check that weights are those of a whole model, as far as their names and sizes show.

    Raises:
        CheckpointError: they are not; the message names some and what to do.
    """
    kinds = (
        (
            [name for name in tensors if _ADAPTER.search(name)],
            f"hold an adapter (LoRA or the like) that is not merged into the model; {MERGE}",
        ),
        (
            [name for name in tensors if _FLAT.search(name)],
            "hold many of FSDP's in one; save the model again with FULL_STATE_DICT",
        ),
        (
            [name for name, tensor in tensors.items() if not tensor.count],
            "are empty, as DeepSpeed's ZeRO-3 leaves them where it does not gather them; set "
            "stage3_gather_16bit_weights_on_model_save to true and save again, or restore them with zero_to_fp32.py",
        ),
        (
            [name for name in tensors if _QUANTIZED.search(name)],
            "are those of a quantized model; give the model with its whole weights",
        ),
    )
    for names, what in kinds:
        if names:
            raise CheckpointError(f"checkpoint '{directory}' cannot be loaded: weights {what} ({some(names)})")


def some(names: list[str]) -> str:
    """The first of some names, and their number."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"

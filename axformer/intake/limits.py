"""Upper limits of a checkpoint, generous for every public model of the supported families."""

CONFIG_BYTES = 4 << 20
"""Bytes of ``config.json``; thousands of label names take a tenth of it."""
TOKENIZER_BYTES = 64 << 20
"""Bytes of a tokenizer file; the largest public ones have half of it."""
SENTENCEPIECE_BYTES = 32 << 20
"""Bytes of a SentencePiece model; one of 900,000 pieces has 18 MB. Parsed, empty pieces take twenty times their bytes."""
COMPANION_BYTES = 1 << 20
"""Bytes of a chat template or of generation settings; the longest templates have some ten thousand characters."""
NOTES_BYTES = 64 << 10
"""Bytes of all keys of ``config.json`` that are only copied."""
INDEX_BYTES = 16 << 20
"""Bytes of the index of sharded weights; a hundred thousand names take a few megabytes."""
HEADER_BYTES = 100_000_000
"""Bytes of the header of a weight file; the limit of the format's own library."""
JSON_DEPTH = 32
"""Nesting depth of objects and lists; tokenizers have eight levels."""

TENSORS = 100_000
"""Tensors in a checkpoint."""
TENSOR_DIMENSIONS = 8
"""Dimensions of a tensor."""
NAME_LENGTH = 512
"""Characters of a tensor's name, or of a text in a config."""
BUFFER_BYTES = 1 << 30
"""Bytes of buffers that a model may build, such as masks; GPT-2's take 13 MB."""
MISSING_WEIGHTS = 1 << 24
"""Missing weights that may be allocated to report them by name; any head has fewer."""

LABELS = 100_000
"""Classes of a classifier."""
LIST_LENGTH = 4096
"""Entries of a list or an object in a config, except labels; rotary scaling has one for every two dimensions of a head."""
INTEGER = 10_000_000
"""Magnitude of any integer in a config; positions are the largest, with a million at most."""
MAGNITUDE = 1e12
"""Magnitude of any other number; rotary bases reach a billion."""
DIMENSIONS = {
    **dict.fromkeys(
        (
            "num_hidden_layers", "n_layers", "n_layer", "num_hidden_groups", "inner_group_num", "max_window_layers",
            "global_attn_every_n_layers",
        ),
        96,
    ),
    **dict.fromkeys(("num_attention_heads", "n_heads", "n_head", "num_key_value_heads", "conv_groups"), 256),
    **dict.fromkeys(
        (
            "hidden_size", "dim", "d_model", "n_embd", "embedding_size", "head_dim", "d_head", "attention_head_size",
            "pooler_hidden_size", "conv_kernel_size",
        ),
        8192,
    ),
    **dict.fromkeys(("intermediate_size", "hidden_dim", "d_inner", "n_inner"), 65_536),
    "vocab_size": 1_000_000,
    "n_token": 1_000_000,
    "num_labels": LABELS,
}  # fmt: skip
"""Upper limits of the keys of ``config.json`` that determine a model's size."""

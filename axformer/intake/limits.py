"""The most that a checkpoint may ask for. Generous beside every public model that fits the supported families."""

CONFIG_BYTES = 4 << 20
"""Of ``config.json``: thousands of label names take a tenth of it."""
TOKENIZER_BYTES = 64 << 20
"""Of a file of a tokenizer; the largest public ones have half of it."""
SENTENCEPIECE_BYTES = 32 << 20
"""Of a SentencePiece model; one of 900,000 pieces has 18 MB. Parsed, empty pieces take twenty times their bytes."""
COMPANION_BYTES = 1 << 20
"""Of a chat template or of settings of generation; the longest templates have some ten thousand characters."""
NOTES_BYTES = 64 << 10
"""Of all keys of ``config.json`` together that only go along."""
INDEX_BYTES = 16 << 20
"""Of the index of sharded weights: a hundred thousand names take a few megabytes."""
HEADER_BYTES = 100_000_000
"""Of the header of a file of weights; what the format's own library allows."""
JSON_DEPTH = 32
"""Objects and lists inside each other; tokenizers have eight."""

TENSORS = 100_000
"""Tensors in a checkpoint."""
TENSOR_DIMENSIONS = 8
"""Dimensions of a tensor."""
NAME_LENGTH = 512
"""Characters of a tensor's name, or of a word in a configuration."""
BUFFER_BYTES = 1 << 30
"""What a model may build beside its weights, such as masks; GPT-2's take 13 MB."""
MISSING_WEIGHTS = 1 << 24
"""Weights that may be allocated to find out by name which ones are missing; any head has fewer."""

LABELS = 100_000
"""Classes of a classifier."""
LIST_LENGTH = 4096
"""Entries of a list or an object in a configuration, labels apart; rotary scaling has one for each two dimensions of a head."""
INTEGER = 10_000_000
"""Any whole number in a configuration, up or down; positions are the largest, with a million at most."""
MAGNITUDE = 1e12
"""Any other number; rotary bases reach a billion."""
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
"""The most of what decides how large a model is, by its key in ``config.json``."""

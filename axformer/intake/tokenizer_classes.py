"""The tokenizers that are loaded: those of the supported families, all of which work without code of others."""

TOKENIZER_CLASSES = frozenset(
    name + fast
    for name in (
        "AlbertTokenizer", "BertTokenizer", "BloomTokenizer", "CamembertTokenizer", "CodeLlamaTokenizer", "CohereTokenizer",
        "DebertaTokenizer", "DebertaV2Tokenizer", "DistilBertTokenizer", "ElectraTokenizer", "GPT2Tokenizer",
        "GPTNeoXTokenizer", "GemmaTokenizer", "LlamaTokenizer", "MPNetTokenizer", "PreTrainedTokenizer", "Qwen2Tokenizer",
        "Qwen3Tokenizer", "RobertaTokenizer", "XLMRobertaTokenizer", "XLNetTokenizer",
    )
    for fast in ("", "Fast")
) | {"TokenizersBackend"}  # fmt: skip
"""Names of classes, as ``tokenizer_class`` has them."""

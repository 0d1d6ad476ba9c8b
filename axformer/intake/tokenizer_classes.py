"""The tokenizers that are loaded: those of the supported families, all of which work without code of others.

Any other class counts for nothing where ``tokenizer.json`` is there, which says all that a tokenizer does.
"""

from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES, tokenizer_class_from_name

TOKENIZER_CLASSES = frozenset(
    name + fast
    for name in (
        "AlbertTokenizer", "BertTokenizer", "BloomTokenizer", "CamembertTokenizer", "CodeLlamaTokenizer", "CohereTokenizer",
        "DebertaTokenizer", "DebertaV2Tokenizer", "DistilBertTokenizer", "ElectraTokenizer", "GPT2Tokenizer",
        "GPTNeoXTokenizer", "GemmaTokenizer", "HerbertTokenizer", "LlamaTokenizer", "MPNetTokenizer", "PreTrainedTokenizer",
        "Qwen2Tokenizer", "Qwen3Tokenizer", "RobertaTokenizer", "XLMRobertaTokenizer", "XLNetTokenizer",
    )
    for fast in ("", "Fast")
) | {"TokenizersBackend"}  # fmt: skip
"""Names of classes, as ``tokenizer_class`` has them."""
PLAIN_CLASS = "PreTrainedTokenizerFast"
"""The class that does what ``tokenizer.json`` says and nothing of its own."""
SENTENCEPIECE_CLASSES = {
    "AlbertTokenizer": "spiece.model",
    "CamembertTokenizer": "sentencepiece.bpe.model",
    "DebertaV2Tokenizer": "spm.model",
    "XLMRobertaTokenizer": "sentencepiece.bpe.model",
    "XLNetTokenizer": "spiece.model",
}
"""Classes that are made of a SentencePiece model, and the name of the file that each reads."""


def class_of(model_type: str, named: str | None) -> str:
    """The class of a tokenizer, without the end that tells a fast one.

    Args:
        model_type: the family of its model.
        named: what the tokenizer's or the model's configuration says; None if neither says anything.
    """
    return str(named or TOKENIZER_MAPPING_NAMES.get(model_type) or PLAIN_CLASS).removesuffix("Fast")


def kind_of(name: str) -> str | None:
    """The kind of table that a known class makes its tokenizer of, as ``tokenizer.json`` calls it; None if of any."""
    model = getattr(tokenizer_class_from_name(name), "model", None)
    return None if model is None else str(model.__name__)

"""The tokenizer classes that are loaded: those of the supported families, which need no third-party code.

Any other class is ignored if there is a ``tokenizer.json``, which fully defines a tokenizer.
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
"""Class names, as in ``tokenizer_class``."""
PLAIN_CLASS = "PreTrainedTokenizerFast"
"""The class that does only what ``tokenizer.json`` says."""
SENTENCEPIECE_CLASSES = {
    "AlbertTokenizer": "spiece.model",
    "CamembertTokenizer": "sentencepiece.bpe.model",
    "DebertaV2Tokenizer": "spm.model",
    "XLMRobertaTokenizer": "sentencepiece.bpe.model",
    "XLNetTokenizer": "spiece.model",
}
"""Classes that read a SentencePiece model, and the file name that each reads."""


def class_of(model_type: str, named: str | None) -> str:
    """The class of a tokenizer, without the suffix ``Fast``."""
    return str(named or TOKENIZER_MAPPING_NAMES.get(model_type) or PLAIN_CLASS).removesuffix("Fast")


def kind_of(name: str) -> str | None:
    """The kind of model in ``tokenizer.json`` that a known class requires; None for any."""
    model = getattr(tokenizer_class_from_name(name), "model", None)
    return None if model is None else str(model.__name__)

"""Tokenizers with fewer tokens give the same ones for every text of the kept scripts, and for the texts whose tokens stay."""

import json
import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from axformer.errors import CheckpointError, ConfigError
from axformer.intake.vocabulary import Vocabulary, characters_of

SAID = """the film was naïve café größte straße señor word1 2026 don't (good) 12,5 % été ça élan
и фильм был очень хорошим вчера мы ели борщ ταινία ήταν καλή σήμερα Ελλάδα
映画はとても良かった 今日は 東京 私たち 한국어 영화 좋았다 فيلم جيد जीवन सुंदर 🙂 👍 ﬁne №5 ㍿ ｶﾞ"""
WORDS = SAID.split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LATIN = sorted(characters_of(["Latin"]))
TEXTS = [" ".join(random.Random(seed).choices(WORDS, k=12)) for seed in range(400)]


def wordpiece() -> tuple[Tokenizer, Any]:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer, trainers.WordPieceTrainer(vocab_size=400, special_tokens=SPECIAL)


def cased_wordpiece() -> tuple[Tokenizer, Any]:
    tokenizer, trainer = wordpiece()
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    return tokenizer, trainer


def byte_level() -> tuple[Tokenizer, Any]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return tokenizer, trainers.BpeTrainer(vocab_size=600, special_tokens=SPECIAL, initial_alphabet=alphabet)


def pieces() -> tuple[Tokenizer, Any]:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer, trainers.UnigramTrainer(vocab_size=350, special_tokens=SPECIAL, unk_token="[UNK]")


def marked_bpe() -> tuple[Tokenizer, Any]:
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return tokenizer, trainers.BpeTrainer(vocab_size=500, special_tokens=SPECIAL)


KINDS = (wordpiece, cased_wordpiece, byte_level, pieces, marked_bpe)
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@cache
def trained(kind: Any) -> tuple[Tokenizer, Vocabulary]:
    """A tokenizer with a token that was added behind its vocabulary, and its vocabulary."""
    tokenizer, trainer = kind()
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.add_special_tokens(["<later>"])
    pair = [(name, tokenizer.token_to_id(name)) for name in ("[SEP]", "[CLS]")]
    template = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", special_tokens=pair)
    tokenizer.post_processor = template if kind is not byte_level else processors.RobertaProcessing(*pair)
    return tokenizer, Vocabulary.of(json.loads(tokenizer.to_str()), (), tokenizer.token_to_id("[PAD]"))


@cache
def latin(kind: Any) -> tuple[Tokenizer, dict[int, int]]:
    _, vocabulary = trained(kind)
    table, new = vocabulary.only(vocabulary.written_with(LATIN))
    return Tokenizer.from_str(json.dumps(table)), new


def same(whole: Tokenizer, smaller: Tokenizer, new: dict[int, int], *texts: str) -> bool:
    return [new.get(one) for one in whole.encode(*texts).ids] == smaller.encode(*texts).ids


@kinds
@given(st.data())
@settings(deadline=None, max_examples=60)
def test_every_text_of_a_kept_script_has_the_same_tokens(kind: Any, data: st.DataObject) -> None:
    (whole, _), (smaller, new) = trained(kind), latin(kind)
    texts = data.draw(st.lists(st.text(st.sampled_from(LATIN), max_size=40), min_size=1, max_size=2))
    assert same(whole, smaller, new, *texts)


@kinds
def test_texts_of_words_that_were_learnt_have_the_same_tokens_and_others_leave(kind: Any) -> None:
    (whole, vocabulary), (smaller, new) = trained(kind), latin(kind)
    words = [word for word in WORDS if set(word) <= set(LATIN)]
    draw = random.Random(0)
    assert all(same(whole, smaller, new, " ".join(draw.choices(words, k=9))) for _ in range(200))
    gone = [token for token, place in vocabulary.tokens.items() if place not in new]
    assert len(gone) > 40, "tokens of other scripts leave"
    assert all(smaller.token_to_id(token) is None for token in gone)
    assert smaller.token_to_id("<later>") == new[whole.token_to_id("<later>")]


@kinds
def test_all_scripts_keep_nearly_everything(kind: Any) -> None:
    _, vocabulary = trained(kind)
    scripts = ("Latin", "Cyrillic", "Greek", "Han", "Hiragana", "Katakana", "Hangul", "Arabic", "Devanagari")
    assert vocabulary.written_with(characters_of(scripts)) == set(vocabulary.tokens.values())


@kinds
@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=30))
@settings(deadline=None, max_examples=30)
def test_texts_whose_tokens_stay_have_the_same_ones(kind: Any, texts: list[str]) -> None:
    whole, vocabulary = trained(kind)
    seen = {one for text in texts for one in whole.encode(text).ids}
    kept = vocabulary.used(seen, texts)
    table, new = vocabulary.only(kept)
    smaller = Tokenizer.from_str(json.dumps(table))
    assert all(same(whole, smaller, new, text) for text in texts)
    assert seen <= kept


@kinds
def test_a_text_of_known_characters_never_becomes_unknown(kind: Any) -> None:
    whole, vocabulary = trained(kind)
    table, _ = vocabulary.only(vocabulary.used(whole.encode(TEXTS[0]).ids, TEXTS))
    smaller = Tokenizer.from_str(json.dumps(table))
    assert len(smaller.get_vocab()) < len(whole.get_vocab())
    assert ("▁" in smaller.get_vocab()) == ("▁" in whole.get_vocab())
    unknown = smaller.token_to_id("[UNK]")
    assert not any(
        unknown in smaller.encode(text).ids and whole.token_to_id("[UNK]") not in whole.encode(text).ids
        for text in TEXTS
    )


def test_small_ids_stay_where_positions_count_from_the_padding() -> None:
    whole, _ = trained(wordpiece)
    vocabulary = Vocabulary.of(json.loads(whole.to_str()), (), 7)
    assert set(range(8)) <= vocabulary.fixed


def test_scripts_are_those_of_unicode() -> None:
    assert {"é", "ß", "1", "🙂", "\u0301"} <= characters_of(["Latin"])
    assert not {"я", "東"} & characters_of(["Latin"])
    with pytest.raises(ConfigError, match="no script 'Klingon'; they are called as in Unicode"):
        characters_of(["Latin", "Klingon"])


def test_vocabularies_of_other_kinds_are_refused() -> None:
    words = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    with pytest.raises(CheckpointError, match="of the kind WordLevel; vocabularies of WordPiece, BPE and Unigram"):
        Vocabulary.of(json.loads(words.to_str()), (), None)

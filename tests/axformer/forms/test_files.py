"""The tokenizer of a result is that of its checkpoint: the same files, the same ids for any text, without this package too."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, GPT2Tokenizer, PreTrainedTokenizerFast

import axformer.auto  # noqa: F401 - registers the compact models
from axformer.data.encoding import TokenLimits, tokenize
from axformer.data.reading import rows_of
from axformer.forms.files import write_model
from axformer.intake.checkpoint import load_checkpoint
from axformer.model.compact import compact
from axformer.plan.plan import Plan
from tests.forked import forked_interpreter
from tests.tiny_families import tiny_family_model
from tests.tiny_models import SPECIAL, WORDS, tiny_tokenizer

TEXT = ["Some words, and “others”: naïve café!", " ".join(WORDS), "word1word2  word3\tword4\n"] * 4
TOKENS = 65
"""Words that the tiny models know."""


def of_words(directory: Path) -> None:
    tiny_tokenizer().save_pretrained(directory)


def with_baked_settings(directory: Path) -> None:
    """Truncation and padding in the file itself, as in those of sentence encoders; arguments and paths in the settings."""
    of_words(directory)
    table = Tokenizer.from_file(str(directory / "tokenizer.json"))
    table.enable_truncation(7)
    table.enable_padding(length=9)
    table.save(str(directory / "tokenizer.json"))
    path = directory / "tokenizer_config.json"
    told = {"local_files_only": True, "name_or_path": "/home/me", "tokenizer_file": "/home/me/t.json", "max_length": 7}
    path.write_text(json.dumps(json.loads(path.read_text()) | told))


def of_a_list_of_words(directory: Path) -> None:
    (directory / "vocab.txt").write_text("\n".join(SPECIAL + WORDS))
    (directory / "tokenizer_config.json").write_text('{"do_lower_case": false, "model_max_length": 9}')


def without_settings(directory: Path) -> None:
    of_words(directory)
    (directory / "tokenizer_config.json").unlink()


def of_older_versions(directory: Path) -> None:
    of_words(directory)
    settings = {"tokenizer_class": "BertTokenizerFast", "model_max_length": 10**30, "do_lower_case": True}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    (directory / "special_tokens_map.json").write_text(json.dumps({"cls_token": "[CLS]", "unk_token": "[UNK]"}))


def of_bytes(directory: Path) -> None:
    table = Tokenizer(models.BPE())
    table.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    table.decoder = decoders.ByteLevel()
    table.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=TOKENS, special_tokens=["<pad>", "<s>"]))
    table.save(str(directory / "tokenizer.json"))
    model = json.loads((directory / "tokenizer.json").read_text())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    GPT2Tokenizer(vocab=model["vocab"], merges=merges, pad_token="<pad>").save_pretrained(directory)


def of_no_class(directory: Path) -> None:
    """One that only its own file describes, with a tokenizer of pieces."""
    pieces = [("<pad>", 0.0), ("<unk>", 0.0), *((f"▁{word}", -2.0) for word in WORDS[:40]), ("▁", -3.0), ("w", -4.0)]
    table = Tokenizer(models.Unigram(pieces, unk_id=1))
    table.normalizer = normalizers.NFKC()
    table.pre_tokenizer = pre_tokenizers.Metaspace()
    table.post_processor = processors.TemplateProcessing(single="$A <pad>", special_tokens=[("<pad>", 0)])
    PreTrainedTokenizerFast(tokenizer_object=table, unk_token="<unk>", pad_token="<pad>").save_pretrained(directory)


def of_a_base_class(directory: Path) -> None:
    of_no_class(directory)
    path = directory / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tokenizer_class": "PreTrainedTokenizerFast"}))


def of_nothing_but_a_table(directory: Path) -> None:
    """Transformers makes a tokenizer of the family's class of it, which cuts texts otherwise than the table."""
    of_bytes(directory)
    (directory / "tokenizer_config.json").write_text('{"pad_token": "<pad>"}')


CASES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "words": ("bert", of_words),
    "baked settings": ("bert", with_baked_settings),
    "a list of words": ("bert", of_a_list_of_words),
    "no settings": ("electra", without_settings),
    "older versions": ("bert", of_older_versions),
    "another family's class": ("roberta", of_words),
    "bytes": ("gpt2", of_bytes),
    "no class": ("llama", of_no_class),
    "a base class": ("qwen3", of_a_base_class),
    "nothing but a table": ("qwen3", of_nothing_but_a_table),
}
FILE_ALONE = "nothing but a table"
Homes = dict[str, tuple[Path, Path]]


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Homes:
    """Each checkpoint, and its result after rows have gone through its tokenizer."""
    return {name: made(tmp_path_factory.mktemp("home"), *case) for name, case in CASES.items()}


def made(home: Path, family: str, save: Callable[[Path], None]) -> tuple[Path, Path]:
    checkpoint, result = home / "checkpoint", home / "result"
    tiny_family_model(family).save_pretrained(checkpoint)
    save(checkpoint)
    loaded = load_checkpoint(checkpoint)
    rows = rows_of([{"text": text, "label": 0} for text in TEXT])
    tokenize(rows, loaded.tokenizer, TEXT, None, TokenLimits(5), padding="max_length")
    write_model(compact(loaded.model, loaded.architecture, Plan.full(loaded.dimensions)), loaded.companions, result)
    return checkpoint, result


def loaded_from(homes: Homes) -> list[tuple[Any, Any]]:
    return [tuple(AutoTokenizer.from_pretrained(home) for home in pair) for pair in homes.values()]  # type: ignore[misc]


def table_in(directory: Path) -> Tokenizer | None:
    path = directory / "tokenizer.json"
    if not path.exists():
        return None
    table = Tokenizer.from_file(str(path))
    table.no_padding()
    table.no_truncation()
    return table


def test_any_text_has_the_same_ids(homes: Homes) -> None:
    """As before, and as the checkpoint's own table says, which is read the same by any library."""
    pairs, tables = loaded_from(homes), [table_in(checkpoint) for checkpoint, _ in homes.values()]

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.text(max_size=12) | st.sampled_from([*TEXT, *WORDS, *SPECIAL]), max_size=6).map(" ".join))
    def same(text: str) -> None:
        for name, table, (before, after) in zip(homes, tables, pairs, strict=True):
            if table is not None:
                assert after(text)["input_ids"] == table.encode(text).ids, name
            if name != FILE_ALONE:
                assert dict(after(text)) == dict(before(text)), name
                assert dict(after([text], truncation=True)) == dict(before([text], truncation=True)), name

    same()
    for before, after in pairs:
        assert (after.padding_side, after.model_max_length) == (before.padding_side, before.model_max_length)
        assert after.special_tokens_map.items() <= before.special_tokens_map.items()


def test_no_call_and_no_machine_leaves_a_trace(homes: Homes) -> None:
    for name, (checkpoint, result) in homes.items():
        settings = json.loads((result / "tokenizer_config.json").read_text())
        assert not {"local_files_only", "name_or_path", "tokenizer_file", "is_local", "trust_remote_code"} & set(
            settings
        )
        assert str(checkpoint.parent) not in (result / "tokenizer_config.json").read_text(), name
        came, went = checkpoint / "tokenizer.json", result / "tokenizer.json"
        if came.exists():
            assert went.read_bytes() == came.read_bytes(), name
        else:
            assert json.loads(went.read_text())["truncation"] is None
            assert json.loads(went.read_text())["padding"] is None


PROGRAM = """
import json, sys
from transformers import AutoTokenizer
print(json.dumps([AutoTokenizer.from_pretrained(path)(json.loads(sys.argv[1]))["input_ids"] for path in sys.argv[2:]]))
assert not [name for name in sys.modules if name.startswith("axformer")]
"""


def test_it_loads_without_this_package(homes: Homes, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    asked = [json.dumps(TEXT), *(str(result) for _, result in homes.values())]
    ran = forked_interpreter(["-I", str(tmp_path / "program.py"), *asked])
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == [after(TEXT)["input_ids"] for _, after in loaded_from(homes)]

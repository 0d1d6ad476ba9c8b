"""What forms of files, columns and labels are read how: the cases of ``test_readings.py`` and the tables of a document.

``python -m tests.axformer.data.readings`` writes the tables into ``docs/data.md``.
"""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from axformer.data.columns import Columns
from axformer.data.encoding import Encoded, TokenLimits
from axformer.data.reading import read_rows
from axformer.tasks.base import Task
from axformer.tasks.binary import BinaryClassification
from axformer.tasks.classification import Classification
from axformer.tasks.multi_label import MultiLabelClassification
from axformer.tasks.multiple_choice import MultipleChoice
from axformer.tasks.one_output import GradedClassification
from axformer.tasks.regression import Regression
from axformer.tasks.reranking import Reranking
from axformer.tasks.token_classification import TokenClassification
from tests.tiny_models import tiny_tokenizer

DOCUMENT = Path("docs/data.md")
_TEXTS = ("word1 word2", "word3", "word4 word5")


def classes(*names: str) -> SimpleNamespace:
    """The configuration of a model with these classes."""
    return SimpleNamespace(id2label=dict(enumerate(names)), num_labels=len(names))


COLOURS, SIGNS, CODES = classes("red", "green", "blue"), classes("negative", "positive"), classes("01", "02", "03")
STARS, TRUTHS, UNNAMED = classes(*"12345"), classes("False", "True"), classes("LABEL_0", "LABEL_1", "LABEL_2")
DRINKS, CODED = classes("café", "thé"), classes("900000000000000001", "900000000000000002")
TOPICS = classes("toxic", "threat", "insult", "hate")
TAGS = classes("O", "B-PER", "I-PER")
ENDS = classes("O", "B-PER", "I-PER", "E-PER", "S-PER")
TAGGER = TokenClassification(tuple(TAGS.id2label.values()))


def outputs(count: int) -> SimpleNamespace:
    """The configuration of a model with so many outputs that are numbers."""
    return SimpleNamespace(id2label=None, num_labels=count)


@dataclass(frozen=True)
class Case:
    """Data of one form, and what is made of it."""

    form: str
    """What the document calls it."""
    content: str | bytes
    expected: Any = None
    """The labels, one a row; null where it is refused."""
    refused: str = ""
    """Of the message, a part."""
    note: str = ""
    """Of what is said to the user, a part."""
    model: SimpleNamespace = field(default_factory=lambda: UNNAMED)
    task: Task = field(default_factory=Classification)
    file: str = "data.jsonl"
    columns: Columns = field(default_factory=Columns)


def lines(*labels: Any, name: str = "label", **more: Sequence[Any]) -> str:
    """Rows of JSON Lines with these labels."""
    rows = [
        {"text": _TEXTS[place % 3], name: label} | {other: values[place] for other, values in more.items()}
        for place, label in enumerate(labels)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def table(*labels: str, between: str = ",", header: str = "text,label") -> str:
    """Rows of CSV with these labels."""
    rows = [f"{_TEXTS[place % 3]}{between}{label}" for place, label in enumerate(labels)]
    return "\n".join([header.replace(",", between), *rows]) + "\n"


def tagged(*tags: Any) -> str:
    """Rows of two words, and of none where there are no tags."""
    rows = [{"tokens": ["word1", "word2"][: len(one)], "tags": one} for one in tags]
    return "".join(json.dumps(row) + "\n" for row in rows)


def chunks(form: str, content: str, expected: Any = None, *, model: SimpleNamespace = TAGS, **more: Any) -> Case:
    """A case of a tagger of chunks."""
    return Case(form, content, expected, model=model, task=TokenClassification.of(model), **more)


def tags(form: str, words: str, given: str, expected: Any = None, refused: str = "") -> Case:
    """A case of a tagger whose words and tags are in cells of CSV."""
    content = f'tokens,tags\n"{words}","{given}"\n'
    return Case(form, content, expected, refused, model=TAGS, task=TAGGER, file="data.csv")


def chosen(*labels: Any) -> str:
    """Rows of a text and two choices."""
    return lines(*labels, choices=[["word1", "word2"]] * len(labels))


def ranked(*labels: Any) -> str:
    """Rows of a query and three passages."""
    return lines_of(*({"query": "word1", "passages": ["word2", "word3", "word4"], "label": label} for label in labels))


def lines_of(*rows: dict[str, Any]) -> str:
    """These rows as JSON Lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


_ONE_LIST = json.dumps([{"text": "word1", "label": 0}, {"text": "word2", "label": 1}], indent=1)

LABELS = (
    Case("names of classes", lines("red", "blue"), [0, 2], model=COLOURS),
    Case("in other upper and lower case", lines("Red", "BLUE"), [0, 2], model=COLOURS, note="upper and lower case"),
    Case("indices", lines(0, 2, 1), [0, 2, 1], model=COLOURS),
    Case("indices as text", table("0", "2", "1"), [0, 2, 1], model=COLOURS, file="data.csv"),
    Case("indices with a point, as pandas writes a column with a gap", table("0.0", "2.0"), [0, 2], file="data.csv"),
    Case("classes called `01`, `02`, `03`; in CSV", table('"01"', '"02"'), [0, 1], model=CODES, file="data.csv"),
    Case("`01` where no class is called so", table("01", "02"), refused="leading zero", file="data.csv"),
    Case("classes called `1` to `5`; 1 to 5", lines(1, 5, 3), [0, 4, 2], model=STARS),
    Case("classes called `1` to `5`; 0 to 4", lines(0, 4, 2), [0, 4, 2], model=STARS, note="0 is among them"),
    Case("classes called `1` to `5`; 1 to 4 only", lines(1, 4, 2), [0, 3, 1], model=STARS, note="for every one is a name"),
    Case("true and false, for classes called so", lines(True, False), [1, 0], model=TRUTHS),
    Case("true and false, for two other classes", lines(True, False), [1, 0], model=SIGNS, note="true is class 1"),
    Case("`true` and `false` in CSV", table("true", "false"), [1, 0], model=SIGNS, file="data.csv", note="true is class 1"),
    Case("true and false, for three classes", lines(True, False), refused="for a model of two classes", model=COLOURS),
    Case("names and indices mixed", lines("red", 2), refused="neither all names nor all indices", model=COLOURS),
    Case("a name that the model lacks", lines("red", "pink"), refused="'pink' is unknown", model=COLOURS),
    Case("an index that the model lacks", lines(0, 3), refused="3 is unknown", model=COLOURS),
    Case("-1", lines(0, -1), refused="kept secret", model=COLOURS),
    Case("a fraction", lines(0, 0.5), refused="0.5 is unknown", model=COLOURS),
    Case("nothing", lines(0, None), refused="fill it in, or leave the row out", model=COLOURS),
    Case("accents apart, invisible characters", lines("cafe\u0301", "thé\u200b"), [0, 1], model=DRINKS, note="accents"),
    Case("names of 18 digits, as numbers", lines(900000000000000002, 900000000000000001), [1, 0], model=CODED),
    Case("numbers that a spreadsheet rounded", table("9.00E+17"), refused="has rounded it", model=CODED, file="data.csv"),
    Case("18 digits that no class has", lines(900000000000000003), refused="is unknown", model=CODED),
    Case("a list of one label, also in a cell of CSV", table("['red']", "['blue']"), [0, 2], model=COLOURS, file="data.csv"),
)  # fmt: skip


def many(form: str, content: str, expected: Any = None, **more: Any) -> Case:
    """A case of a model for which several classes may apply."""
    return Case(form, content, expected, task=MultiLabelClassification(), **{"model": TOPICS} | more)


_FOUR_COLUMNS, _OTHER_COLUMNS = "text,toxic,threat,insult,hate\nword1,0,1,0,1\n", "text,a,b,c,d\nword1,0,1,0,1\n"
_SETS = "text,labels\na,\"('toxic',)\"\nb,{'hate'}\n"
_ARRAYS = "text,labels\na,[0 1 0 1]\nb,[0. 0. 0. 0.]\n"

LABEL_SETS = (
    many("a list of names", lines(["threat"], [], name="labels"), [[0, 1, 0, 0], [0] * 4]),
    many("a list of indices", lines([1, 3], [0], name="labels"), [[0, 1, 0, 1], [1, 0, 0, 0]]),
    many("a 0 or a 1 for each class", lines([0, 1, 0, 1], [0] * 4, name="labels"), [[0, 1, 0, 1], [0] * 4]),
    many("the same with points", lines([0.0, 1.0, 0.0, 1.0], [0.0] * 4, name="labels"), [[0, 1, 0, 1], [0] * 4]),
    many("true or false for each class", lines([False, True, False, True], name="labels"), [[0, 1, 0, 1]]),
    many(
        "names with commas between, in CSV",
        'text,labels\nword1,"toxic,hate"\nword2,\n',
        [[1, 0, 0, 1], [0] * 4],
        file="data.csv",
    ),
    many("a list in a cell of CSV", "text,labels\nword1,\"['toxic', 'hate']\"\n", [[1, 0, 0, 1]], file="data.csv"),
    many(
        "a tuple or a set in a cell",
        "text,labels\na,\"('toxic',)\"\nb,{'hate'}\n",
        [[1, 0, 0, 0], [0, 0, 0, 1]],
        file="data.csv",
    ),
    many(
        "an array of NumPy in a cell",
        "text,labels\na,[0 1 0 1]\nb,[0. 0. 0. 0.]\n",
        [[0, 1, 0, 1], [0] * 4],
        file="data.csv",
    ),
    many("a column for each class, called as the class", _FOUR_COLUMNS, [[0, 1, 0, 1]], file="data.csv"),
    many(
        "`--columns labels=hate+insult+threat+toxic`",
        _FOUR_COLUMNS,
        [[0, 1, 0, 1]],
        file="data.csv",
        columns=Columns(labels="hate+insult+threat+toxic"),
    ),
    many(
        "`--columns labels=a+b+c+d`, which are not names of classes",
        _OTHER_COLUMNS,
        [[0, 1, 0, 1]],
        file="data.csv",
        columns=Columns(labels="a+b+c+d"),
        note="in this order",
    ),
    many("columns of 0 and 1 that were not named", _OTHER_COLUMNS, refused="--columns labels=a+b+c+d", file="data.csv"),
    many(
        "two classes; only `[0, 1]` and `[1, 0]`",
        lines([0, 1], [1, 0], name="labels"),
        model=SIGNS,
        refused="can be a 0 or a 1",
    ),
    many("two classes; also `[0, 0]`", lines([0, 1], [0, 0], name="labels"), [[0, 1], [0, 0]], model=SIGNS),
    many("0s and 1s for too few classes", lines([0, 1, 1], name="labels"), refused="twice"),
    many("probabilities", lines([0.2, 0.7, 0.1, 0.9], name="labels"), refused="0.2 is unknown"),
)

RANKED: dict[str, Any] = {"model": outputs(1), "task": Reranking()}
OTHERS = (
    Case("tags as names", tagged(["O", "B-PER"]), [[0, 1]], model=TAGS, task=TAGGER),
    Case("tags as indices, -100 for what counts for nothing", tagged([-100, 2]), [[-100, 2]], model=TAGS, task=TAGGER),
    Case("a sentence without words", tagged(["O", "O"], []), [[0, 0]], model=TAGS, task=TAGGER, note="1 rows have no word"),
    tags("words and tags with spaces between", "word1 word2", "O B-PER", [[0, 1]]),
    tags("tags with commas between", "word1 word2", "O, B-PER", [[0, 1]]),
    tags("lists as Python writes them, in CSV", "['word1', 'word2']", "['O', 'B-PER']", [[0, 1]]),
    tags("lists as NumPy writes them, in CSV", "['word1' 'word2']", "[0 1]", [[0, 1]]),
    tags("what NumPy left out", "['word1' ... 'word2']", "[0 1 ... 2]", refused="NumPy has left out"),
    tags("lists without quotation marks", "[word1, word2]", "[O, B-PER]", refused="not a list of texts"),
    chunks("a word a row", "tokens,tags\nword1,O\nword2,O\n", refused="a CoNLL file", file="data.csv"),
    chunks("CoNLL", "word1 NN O\nword2 NN B-PER\n\nword3 NN O\n", [[0, 1], [0]], file="data.conll"),
    chunks("BILOU or BIOES for BIO", tagged(["B-PER", "L-PER"], ["O", "U-PER"]), [[1, 2], [0, 1]], note="are BILOU"),
    chunks("BIO for BIOES", tagged(["B-PER", "I-PER"], ["O", "B-PER"]), [[1, 3], [0, 4]], model=ENDS, note="are BIO and"),
    chunks("`PER-B` or `b_per` for `B-PER`", tagged(["b_per", "i_per"]), [[1, 2]], note="are written otherwise"),
    chunks("bare names where none follow one another", tagged(["PER", "O"]), [[1, 0]], note="bare names"),
    chunks("bare names that follow one another", tagged(["PER", "PER"]), refused="model's BIO, and only B says"),
    chunks("I at the beginning, as in IOB1", tagged(["I-PER", "B-PER"], ["O", "I-PER"]), [[2, 1], [0, 2]], note="in IOB1"),
    Case("more tags than words", tagged(["O", "O", "O"]), refused="give each token one tag", model=TAGS, task=TAGGER),
    Case("choices, with the index of the right one", chosen(0, 1), [0, 1], task=MultipleChoice()),
    Case("choices, with its letter, as in RACE", chosen("A", "B"), [0, 1], task=MultipleChoice()),
    Case(
        "`--columns choices=ending0+ending1`, as in SWAG",
        lines(1, 0, ending0=["word1"] * 2, ending1=["word2"] * 2),
        [1, 0],
        task=MultipleChoice(),
        columns=Columns(choices="ending0+ending1"),
    ),
    Case("passages, with the index of the right one", ranked(1), [0, 1, 0], **RANKED),
    Case("passages, with grades", ranked([0, 2, 1]), [0, 1, 0.5], **RANKED),
    Case("an index beyond the passages", ranked(3), refused="none of its 3 passages, which count from 0", **RANKED),
    Case(
        "endings in columns that were not named",
        lines(1, ending0=["word1"], ending1=["word2"]),
        refused="--columns choices=ending0+ending1",
        task=MultipleChoice(),
    ),
)  # fmt: skip

ONE_NUMBER: dict[str, Any] = {"model": outputs(1), "task": Regression()}
TWO_NUMBERS: dict[str, Any] = {"model": outputs(2), "task": Regression()}
YES_OR_NO: dict[str, Any] = {"model": outputs(1), "task": BinaryClassification()}
DEGREE: dict[str, Any] = {"model": outputs(1), "task": GradedClassification()}
NUMBERS = (
    Case("numbers, also as text", table("1.5", "-2"), [[1.5], [-2.0]], **ONE_NUMBER, file="data.csv"),
    Case("a word", lines(1.5, "good"), refused="'good' is not a number", **ONE_NUMBER),
    Case("a list of numbers, one an output", lines([0.5, 2], [1, 3]), [[0.5, 2.0], [1.0, 3.0]], **TWO_NUMBERS),
    Case(
        "`--columns label=scores`, beside a column `labels`",
        lines([0.5, 2], [1, 3], name="scores", labels=["good", "bad"]),
        [[0.5, 2.0], [1.0, 3.0]],
        **TWO_NUMBERS,
        columns=Columns(label="scores"),
    ),
    Case("too few numbers", lines([0.5, 2], [1]), refused="the model has 2 outputs", **TWO_NUMBERS),
    Case("0 and 1, for yes or no", lines(0, 1), [0.0, 1.0], **YES_OR_NO),
    Case("true and false, for yes or no", lines(True, False), [1.0, 0.0], **YES_OR_NO),
    Case("another number, for yes or no", lines(0, 2), refused="neither 0 nor 1", **YES_OR_NO),
    Case("numbers between 0 and 1, for a sigmoid", lines(0.25, 1), [0.25, 1.0], **DEGREE),
    Case("a number beyond 1, for a sigmoid", lines(0.25, 5), refused="not between 0 and 1", **DEGREE),
)


def whole(form: str, content: Any, expected: Any = None, refused: str = "") -> Case:
    """A case of one JSON value."""
    return Case(form, json.dumps(content), expected, refused, file="data.json")


_ROW = {"text": "word1", "label": 0}
_COLUMNS = {"text": ["word1", "word2"], "label": [0, 1]}
_NUMBERED = {name: dict(enumerate(values)) for name, values in _COLUMNS.items()}
_NESTED = json.dumps({"data": {"text": "word1"}, "notes": [{"label": 1}]}) + "\n"
FILES = (
    Case("JSON Lines", lines(0, 1), [0, 1]),
    Case("one list of objects", _ONE_LIST, [0, 1], file="data.json"),
    Case('`{"data": [objects]}`', f'{{"data": {_ONE_LIST}}}', [0, 1], file="data.json"),
    whole("columns as lists", _COLUMNS, [0, 1]),
    whole("columns as pandas' `to_json` writes them", _NUMBERED, [0, 1]),
    whole("the same, `orient=\"index\"`", {"0": _ROW, "1": _ROW}, [0, 0]),
    whole("the same, `orient=\"split\"`", {"columns": ["text", "label"], "data": [["word1", 1]]}, [1]),
    whole("an answer of the hub's rows API", {"rows": [{"row_idx": 0, "row": _ROW}]}, [0]),
    whole("rows whose cells the hub has cut", {"rows": [{"row": _ROW, "truncated_cells": ["text"]}]}, refused="has cut"),
    whole("several splits", {"train": [_ROW], "dev": [_ROW]}, refused="holds the splits train, dev"),
    Case("`--columns text=data.text,label=notes.label`", _NESTED, [1], columns=Columns(text="data.text", label="notes.label")),
    Case("objects that were not named", _NESTED, refused="--columns text=data.text"),
    Case("a key twice", '{"text": "a", "label": 0, "label": 1}\n', refused="line 1 holds the key 'label' twice"),
    Case("dicts as Python prints them", str(_ROW), refused="write it with json.dumps"),
    Case("nothing to see", '{"text": " \\u200b", "label": 0}\n', refused="column 'text' is empty"),
    Case("an ending in capital letters", table("0", "1"), [0, 1], file="DATA.CSV"),
    Case("semicolons between the cells", table("0", "1", between=";"), [0, 1], file="data.csv"),
    Case("tabs between the cells", table("0", "1", between="\t"), [0, 1], file="data.tsv"),
    Case("tabs, and quotation marks that quote nothing", 'text\tlabel\n"word1\t0\nword2"\t1\n', [0, 1], file="data.tsv"),
    Case("line breaks and `\"\"` in quoted cells", 'text,label\n"word1\n""word2""",1\n', [1], file="data.csv"),
    Case("`\\\"` in quoted cells", 'text,label\n"word1 \\"word2\\"",1\n', [1], file="data.csv"),
    Case("a mark of UTF-8, lines as Windows ends them", b"\xef\xbb\xbftext,label\r\nword1,1\r\n", [1], file="data.csv"),
    Case("lines as old Macs end them", "text,label\rword1,1\rword2,0\r", [1, 0], file="data.csv"),
    Case("spaces around names and labels", "text , label\nword1, 1\nword2, 0\n", [1, 0], file="data.csv"),
    Case("UTF-16 with its mark", table("0", "1").encode("utf-16"), [0, 1], file="data.csv"),
    Case("texts of digits, or that say `null`", "text,label\n007,1\nnull,0\n", [1, 0], file="data.csv"),
    Case("another encoding", "text,label\nüber,1\n".encode("cp1252"), refused="is not UTF-8", file="data.csv"),
    Case("an empty cell", "text,label\n,1\n", refused="row 1: column 'text' is empty", file="data.csv"),
    Case("a row that is longer", "text,label\nword1,word2,1\n", refused="line 2 has 3 cells", file="data.csv"),
    Case("no line of names", "1,word1\n0,word2\n", refused="add a line above it that names the columns", file="data.csv"),
    Case("two columns of one name", "text,text\na,b\n", refused="two columns are called 'text'", file="data.csv"),
    Case(
        "a named column that is not there",
        lines(0, 1),
        refused="has no column 'other'",
        columns=Columns(text_pair="other"),
    ),
)  # fmt: skip

TABLES = {"files": FILES, "labels": LABELS, "label sets": LABEL_SETS, "other tasks": OTHERS, "numbers": NUMBERS}


def encoded_of(case: Case) -> Encoded:
    """What the task makes of a case's file."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / case.file
        path.write_bytes(case.content if isinstance(case.content, bytes) else case.content.encode())
        rows = read_rows(str(path), case.columns)
    return case.task.encode(rows, tiny_tokenizer(), case.model, TokenLimits())


def labels_of(case: Case, encoded: Encoded) -> list[Any]:
    """The labels of each row; of tags those between the tokens that stand for the whole."""
    return [label[1:-1] for label in encoded.labels] if encoded.per_token else list(encoded.labels)


def outcome(case: Case) -> str:
    """What the document says of a case: the labels, with what is said to the user."""
    encoded = encoded_of(case)
    labels = ", ".join(_shown(label) for label in labels_of(case, encoded))
    said = "".join(f"; said: {note}" for note in encoded.notes)
    read = "" if encoded.labels_as is None else f": {encoded.labels_as}"
    return f"{labels}{read}{said}"


def _shown(label: Any) -> str:
    if isinstance(label, list):
        return f"[{', '.join(map(_shown, label))}]"
    return f"{label:g}" if isinstance(label, float) else str(label)


def written(name: str) -> str:
    """One table of the document, without what is refused: the message says there what to do. Files give the same labels in
    every form, so there it is a list of forms."""
    taken = [case for case in TABLES[name] if not case.refused]
    if name == "files":
        return "\n".join(f"- {case.form}" for case in taken)
    rows = [f"| {case.form} | {outcome(case).replace('|', chr(92) + '|')} |" for case in taken]
    return "\n".join(["| what the file holds | what is made of it |", "|---|---|", *rows])


def document(text: str) -> str:
    """The text of the document with the tables between its marks."""
    for name in TABLES:
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{written(name)}\n{end}{rest.partition(end)[2]}"
    return text


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")

"""Read CoNLL files: a word and its tags a line, with spaces or a tab between, and a blank line between sentences."""

import re
from typing import Any

_SPACES = re.compile("[ \t]+")
_UPOS, _UNIVERSAL = 3, 10
"""The column of the universal parts of speech in CoNLL-U, and how many it has."""
_DOCUMENT = "-DOCSTART-"
_NOTED = re.compile(r"#\s*(?:id|sent_id|text|newdoc|newpar|begin|end)\b")
"""Comments between sentences, which may have as many words as a line has columns."""


class ConllError(ValueError):
    """The text has another form; the message says where and what to do."""


def read_conll(text: str) -> dict[str, list[Any]]:
    """Parse sentences.

    Returns:
        ``tokens``, the first column, or the second if the first counts the words; ``tags``, the last, or in CoNLL-U the parts
        of speech; and each as ``column1`` and so on. Comments, marks of documents, and CoNLL-U's lines for several words or
        none are left out.

    Raises:
        ConllError: a line has another number of columns than the others.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    tabs = all("\t" in line for line in lines if line.strip() and not line.startswith(("#", _DOCUMENT)))
    sentences: list[list[list[str]]] = [[]]
    width = 0
    for number, line in enumerate(lines, start=1):
        cells = line.rstrip().split("\t") if tabs else _SPACES.split(line.strip())
        if not line.strip() or cells[0] == _DOCUMENT:
            sentences.append([])
        elif sentences[-1] or not (_NOTED.match(line) or (line.startswith("#") and len(cells) != width)):
            width = width or len(cells)
            if len(cells) != width or width == 1:
                count = "one column" if len(cells) == 1 else f"{len(cells)} columns"
                raise ConllError(
                    f"line {number} has {count}, {'not two' if width == 1 else f'the first has {width}'}; "
                    "write a word and its tag a line, and a blank line after a sentence, or give JSON Lines"
                )
            sentences[-1].append(cells)
    return _table([sentence for sentence in sentences if sentence], width)


def _table(sentences: list[list[list[str]]], width: int) -> dict[str, list[Any]]:
    words = [[cells for cells in sentence if cells[0].isdigit()] for sentence in sentences]  # no 1-2, no 1.1
    counts = [[cells[0] for cells in one] for one in words]
    is_numbered = max(map(len, counts), default=0) > 1 and all(
        count and count in [[str(place + start) for place in range(len(count))] for start in (0, 1)] for count in counts
    )
    first, last = (1, _UPOS if width == _UNIVERSAL else width - 1) if is_numbered else (0, width - 1)
    columns = {
        f"column{place + 1}": [[cells[place] for cells in one] for one in (words if is_numbered else sentences)]
        for place in range(width)
    }
    return {"tokens": columns[f"column{first + 1}"], "tags": columns[f"column{last + 1}"], **columns} if columns else {}

"""The most that a data file may hold: more than any validation set, and little enough for the memory of a small worker."""

BYTES = 4 << 30
"""Bytes of a file once it is unpacked."""
RATIO = 200
"""How many times its packed size a file may unpack to; text shrinks to a fifth, the most repetitive to a hundredth."""
SMALL_BYTES = 64 << 20
"""What any file may unpack to, because what does no harm need not be measured."""
ROWS = 10_000_000
"""Rows of a file; the largest public validation sets have some hundred thousand."""
COLUMNS = 1000
"""Columns of a file."""
CELL_CHARACTERS = 1_000_000
"""Characters of a text: a long novel. Tokenizers take seconds for each such text."""
LIST_LENGTH = 100_000
"""Words, tags or choices of a row."""

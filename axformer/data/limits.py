"""Upper limits of a data file: above any validation set, and small enough for the memory of a small worker."""

BYTES = 4 << 30
"""Bytes of an unpacked file."""
RATIO = 200
"""Largest compression ratio; text shrinks to a fifth, the most repetitive text to a hundredth."""
SMALL_BYTES = 64 << 20
"""Any file may unpack to this size, whatever its ratio."""
ROWS = 10_000_000
"""Rows of a file; the largest public validation sets have some hundred thousand."""
COLUMNS = 1000
"""Columns of a file."""
CELL_CHARACTERS = 1_000_000
"""Characters of a text: a long novel. Tokenizers take seconds for each such text."""
LIST_LENGTH = 100_000
"""Words, tags or choices of a row."""

"""The document of the analyses says what its cells hold."""

from benchmarks.redundancy.document import DOCUMENT, RESULTS, document_of, read_cells
from benchmarks.redundancy.grid import cells


def test_the_document_is_what_the_cells_give() -> None:
    found = read_cells(RESULTS)
    assert DOCUMENT.read_text(encoding="utf-8") == document_of(found)
    assert len(found) == len(list(RESULTS.glob("*.json"))) <= len(cells())

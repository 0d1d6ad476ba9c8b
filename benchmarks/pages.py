"""The generated pages of the documents, from the cells alone.

A page is a template in ``benchmarks/templates``. Its tables and counts are functions of a grid's module, applied to its cells.
Pictures lie beside the page, in ``docs/images``.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import ModuleType

from jinja2 import Environment, StrictUndefined

from benchmarks.grids import (
    compress,
    conditions,
    embeddings,
    evidence,
    labels,
    layers,
    rank,
    redundancy,
    speed,
    weights,
)
from benchmarks.harness import RESULTS, Content, read_cells
from benchmarks.tables import counted

TEMPLATES = Path(__file__).parent / "templates"
DOCUMENTS = Path(__file__).parents[1] / "docs"
GRIDS: Mapping[str, ModuleType] = {
    module.GRID.name: module
    for module in (evidence, conditions, compress, layers, rank, redundancy, speed, labels, embeddings, weights)
}
"""The modules of the grids by their names."""
PAGES = ("results", "evidence", "speed", "certificate", "embeddings")


class Tables:
    """The tables of one grid, by the names of the functions that make them."""

    def __init__(self, module: ModuleType, cells: list[Content]) -> None:
        self._module = module
        self.cells = cells

    @property
    def measured(self) -> str:
        """How many cells are measured."""
        return counted(self._module.GRID, self.cells)

    def __getattr__(self, name: str) -> str:
        text: str = getattr(self._module, name)(self.cells)
        return text


def page(name: str, results: Path = RESULTS) -> str:
    """The text of a page.

    Args:
        name: one of ``PAGES``.
        results: where the cells are kept.
    """
    tables = {grid: Tables(module, read_cells(grid, results)) for grid, module in GRIDS.items()}
    beside = partial(layers.beside_compression, tables["layers"].cells, tables["compress"].cells)
    table_four = partial(weights.table_four, tables["evidence"].cells, tables["weights"].cells)
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)  # noqa: S701 - Markdown, not HTML
    template = environment.from_string((TEMPLATES / f"{name}.md").read_text(encoding="utf-8"))
    return template.render(tables, beside_compression=beside, table_four=table_four)


def pictures(results: Path = RESULTS) -> dict[str, str]:
    """The pictures of all pages: SVG by name."""
    cells = {name: read_cells(name, results) for name in GRIDS}
    drawn = {name: GRIDS[name].pictures(cells[name]) for name in ("compress", "layers", "redundancy", "embeddings")}
    drawn["rank"] = rank.pictures(cells["rank"], cells)
    return {name: text for of_grid in drawn.values() for name, text in of_grid.items()}


def write_pages(documents: Path = DOCUMENTS, results: Path = RESULTS) -> None:
    """Write every page and picture."""
    (documents / "images").mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        (documents / f"{name}.md").write_text(page(name, results), encoding="utf-8")
    for name, text in pictures(results).items():
        (documents / "images" / f"{name}.svg").write_text(text, encoding="utf-8")

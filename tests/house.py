"""Counts the house: ``python -m tests.house`` prints how large it is, as a Markdown table.

Product code is what is shipped: ``axformer``, ``api``, ``worker``, ``store``. A file has at least three lines; the import
closure of a file is all files of the project that importing it may load, those imported within functions included.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from axformer.config import METHODS
from store.tables.jobs import Job

ROOT = Path(__file__).parents[1]
PRODUCT = ("axformer", "api", "worker", "store")
MAIN_DOOR = ROOT / "axformer/run.py"
SMALL = 60


def files_in(*rooms: str) -> list[Path]:
    """The Python files of some rooms."""
    return sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))


def lines_in(*rooms: str) -> int:
    """Physical lines of Python in some rooms."""
    return sum(_lines(path) for path in files_in(*rooms))


def _lines(path: Path) -> int:
    return path.read_text().count("\n")


def small_files() -> list[Path]:
    """Product files of 3 to 59 lines."""
    return [path for path in files_in(*PRODUCT) if 3 <= _lines(path) < SMALL]


def classes_twice() -> dict[str, list[str]]:
    """Public class names that more than one product file defines at its top, with the files."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in files_in(*PRODUCT):
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(ROOT)))
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def closure(path: Path) -> set[Path]:
    """All project files that importing this one may load, itself included."""
    seen: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file not in seen:
            seen.add(file)
            waiting.extend(_imported(file))
    return {file for file in seen if _lines(file) >= 3}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _imported(path: Path) -> Iterator[Path]:
    for node in _runtime_nodes(_tree(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files_of(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from _files_of(node.module)
            for alias in node.names:
                yield from _files_of(f"{node.module}.{alias.name}")


def _runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that type checkers alone see."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _runtime_nodes(child)


def _files_of(module: str) -> Iterator[Path]:
    base = ROOT.joinpath(*module.split("."))
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            yield candidate


def knobs() -> set[str]:
    """The knobs of all methods, by name."""
    return {name for config in METHODS.values() for name in config.model_fields}


def words() -> int:
    """Words of the documents."""
    return sum(len(path.read_text().split()) for path in (ROOT / "docs").rglob("*.md"))


def table() -> str:
    """The whole count."""
    rows = {
        "product lines": lines_in(*PRODUCT),
        **{f"... of {room}": lines_in(room) for room in PRODUCT},
        "lines of benchmarks": lines_in("benchmarks"),
        "lines of tests": lines_in("tests"),
        "product files": len([path for path in files_in(*PRODUCT) if _lines(path) >= 3]),
        f"product files under {SMALL} lines": len(small_files()),
        "knobs": len(knobs()),
        "columns of jobs": len(Job.__table__.columns),
        "import closure of axformer/run.py, files": len(closure(MAIN_DOOR)),
        "public class names twice": len(classes_twice()),
        "pages of documents": len(list((ROOT / "docs").rglob("*.md"))),
        "words of documents": words(),
    }
    return "\n".join(["| what | count |", "|---|---|", *(f"| {name} | {count:,} |" for name, count in rows.items())])


if __name__ == "__main__":
    print(table())  # noqa: T201 - this is what the command is for
    for name, places in classes_twice().items():
        print(f"{name}: {', '.join(places)}")  # noqa: T201 - this is what the command is for

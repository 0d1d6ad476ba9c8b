"""Figures in README and in the documents are those of the files that they were taken from."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from benchmarks.goals import RESEARCH, RUNS, Ran, table
from tests.documents import PAGES, ROOT, commands_of

README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_WORDS = 1250
MOST_LINES = 120


def flat(text: str) -> str:
    """Text on one line."""
    return " ".join(text.split())


def rows_of(page: str, heading: str) -> list[list[str]]:
    """The cells of the tables below a heading of a page, until the next heading."""
    text = (ROOT / page).read_text(encoding="utf-8").partition(f"{heading}\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\|.*$", text, flags=re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_readme_is_short() -> None:
    assert len(README.split()) <= MOST_WORDS
    assert len(README.splitlines()) <= MOST_LINES


def test_the_table_of_goals_is_that_of_the_runs() -> None:
    research = (ROOT / "docs" / "pass.md").read_text(encoding="utf-8")
    for ran in RUNS:
        page = research if ran.name in RESEARCH else README
        row = table([ran]).markdown().splitlines()[2]
        assert row in page, f"README or docs/pass.md lacks what `python -m benchmarks.goals` prints: {row}"


@pytest.mark.parametrize("ran", RUNS, ids=lambda ran: ran.name)
def test_the_commands_of_the_runs_are_shown_as_they_were_run(ran: Ran) -> None:
    assert shlex.split(ran.command) in list(commands_of(ROOT / "docs" / "first-job.md"))


def test_the_output_in_readme_is_that_of_its_run() -> None:
    (output,) = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)
    shown = flat(output.replace("\\\n", " "))
    ran = next(one for one in RUNS if one.name == "speedup")
    assert ran.command in shown
    assert ran.report["target"]["sentence"] in shown
    for row in ran.forms.table().rows:
        assert flat(" ".join(row)) in shown
    assert ran.forms.sentence in shown


def test_what_dropped_layers_cost_in_readme_is_what_was_measured() -> None:
    section = "## Fewer layers"
    (row,) = (row for row in rows_of("docs/evidence.md", section) if row[:2] == ["sst2", "mpnet-base"])
    sentence = f"MPNet-base without half of its layers [lost {-float(row[-1]):.1f} points on SST-2]"
    assert sentence in flat(README), f"docs/evidence.md says: {sentence}"


def test_what_compression_does_to_a_larger_model_in_readme_is_what_was_measured() -> None:
    (row,) = (row for row in rows_of("docs/papers.md", "## Large and small") if row[0] == "sst2")
    (before, slow), (after, fast) = (re.findall(r"[\d.]+", one) for one in row[2:])
    assert before == after, "the sentence says so"
    sentence = f"half of the operations answered {after} % of SST-2 right, as before, [in {fast} ms and not {slow}]"
    assert sentence in flat(README), f"docs/papers.md says: {sentence}"


def test_what_compression_costs_in_readme_is_what_was_measured() -> None:
    (half,) = (row for row in rows_of("docs/evidence.md", "## Compression") if row[0] == "0.5")
    sets, mean, worst = int(half[1]), float(half[2]), float(half[3])
    words = {5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten"}
    average = "nothing" if mean >= 0 else f"{-mean:.1f} points"
    sentence = f"{words.get(sets, sets)} data sets lost [{average} on average, {-worst:.1f} points on the worst set]"
    assert sentence in flat(README), f"docs/evidence.md says: {sentence}"


def test_what_the_strict_rule_removes_in_readme_is_what_was_measured() -> None:
    (robust,) = (row for row in rows_of("docs/results.md", "## Do the gains hold?") if row[0] == "`robust`")
    passes, worse, removed = robust[1], robust[-2], robust[-1].replace("%", " %")
    assert f"{passes} passes removed [{removed} of the encoder on average]" in flat(README)
    assert worse == "0"


def test_how_fast_half_of_the_operations_is_in_readme_is_what_was_measured() -> None:
    rows = rows_of("docs/evidence.md", "## Compression")
    (half,) = (row for row in rows if row[:3] == ["minilm", "0.5", "PyTorch"])
    assert 1 / float(half[6].removesuffix("x")) < 2 / 3
    assert "one input took [less than two thirds of the time]" in flat(README)


@pytest.mark.parametrize(
    ("claim", "page", "found"),
    [
        ("3.5 to 5.4 times as fast", "docs/forms.md", r"ONNX int8 3\.5 to 5\.4"),
        ("56 times as fast", "docs/speed.md", r"\b56\b"),
    ],
)
def test_other_figures_of_readme_stand_in_the_page_that_it_links_to(claim: str, page: str, found: str) -> None:
    assert claim in flat(README)
    assert re.search(found, flat((ROOT / page).read_text(encoding="utf-8")))


def anchors_of(page: Path) -> set[str]:
    """The places of a page that links may name, as the site and the hub of the code write them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    plain = [re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading)).strip().lower() for heading in headings]
    return {re.sub(r" +", "-", heading) for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    links: list[Any] = re.findall(
        r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8")
    )
    for file, anchor in links:
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{page.name} links to {file}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), f"{page.name} links to {file}#{anchor}"


def test_every_picture_is_shown() -> None:
    shown = {
        target
        for page in PAGES
        for target in re.findall(r"!\[[^\]]*\]\((?:docs/)?(images/[^)]+)\)", page.read_text("utf-8"))
    }
    assert shown == {f"images/{path.name}" for path in (ROOT / "docs" / "images").iterdir()}

"""What comes from outside is shown as text: in Markdown, and on a terminal."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.table import Table

from axformer.cli.characters import Terminal
from axformer.reporting.markdown import LONGEST_WORD, Markdown, in_markdown, mono, strong, visible, word
from axformer.reporting.rendering import Table as Cells
from axformer.reporting.rendering import passage
from tests.hostile.names import NAMES

GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])
ALPHABET = st.text(st.one_of(st.sampled_from("\\`*_[]()<>|~$#:/!&;-=+.1\n\r\t \"'aw"), st.characters(codec="utf-8")))


def kinds(text: str) -> list[str]:
    """The elements of a piece of Markdown without the text in them."""
    return [
        inner.type for block in GITHUB.parse(text) for inner in (block, *(block.children or ())) if inner.type != "text"
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_one_line_of_text_in_markdown(name: str) -> None:
    for place in ("A {}.", "- {}", "{}", "**What.** {} more", "{}{}"):
        assert kinds(place.replace("{}", in_markdown(name))) == kinds(place.replace("{}", "a"))
    assert kinds(strong(name)) == kinds("**a**")
    assert kinds(mono(name)) == kinds("`a`")
    assert kinds(Cells(["one", name], [[name, "b"]]).markdown()) == kinds("| a | b |\n|---|---|\n| a | b |")
    assert len(word(name)) <= LONGEST_WORD


@given(ALPHABET)
def test_any_text_is_text_in_markdown(text: str) -> None:
    assert "code_inline" in kinds(in_markdown(text)) or kinds("a " + in_markdown(text)) == kinds("a")


def test_what_is_made_of_markdown_is_plain_text_again() -> None:
    assert in_markdown(Markdown("# a")) == "# a"
    assert in_markdown(Markdown("# a") + "") == "\\# a"


def test_our_own_passages_keep_their_code_and_their_words() -> None:
    told = passage("not_measured") + " `axformer apply --upto` writes 1.5 (p < 0.05), a_b: [0.1, 0.2]."
    assert in_markdown(told) == told


@pytest.mark.parametrize("name", NAMES)
def test_a_name_controls_no_terminal(name: str) -> None:
    written = io.StringIO()
    terminal = Terminal(file=written, force_terminal=True, width=200)
    table = Table("name")
    table.add_row(name)
    terminal.print(name, table, style="bold")
    ours = io.StringIO()
    Terminal(file=ours, force_terminal=True, width=200).print(visible(name), table, style="bold")
    assert written.getvalue() == ours.getvalue()
    rest = written.getvalue()
    for allowed in ("\x1b[1m", "\x1b[1;35m", "\x1b[0m", "\n"):
        rest = rest.replace(allowed, "")
    assert all(character.isprintable() for character in rest)

"""Lets pages link to files of the project that are not in ``docs``: the same links work where the code is shown.

The site holds no code, so the name of a file of code stays and its link goes.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave the words of links that lead out of the site."""
    return _LINK.sub(_on_site, markdown)


def _on_site(link: re.Match[str]) -> str:
    words, path = link.groups()
    if not (ROOT / path).exists():
        raise FileNotFoundError(f"a page links to ../{path}, which is not there")
    return words

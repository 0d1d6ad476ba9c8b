"""Lets pages link to files of the project that are not in ``docs``: the same links work where the code is shown.

Measurements that stand beside their programs become pages of the site. The site holds no code, so the name of a file of code
stays and its link goes.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = ("benchmarks/RESULTS.md", "benchmarks/results/speed.svg")
_LINK = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)(?:#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside."""
    for path in PAGES:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to where things are on the site."""
    return _LINK.sub(_on_site, markdown)


def _on_site(link: re.Match[str]) -> str:
    words, path = link.groups()
    if not (ROOT / path).exists():
        raise FileNotFoundError(f"a page links to ../{path}, which is not there")
    return f"[{words}]({path})" if path in PAGES else words

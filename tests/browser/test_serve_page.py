"""The page of ``docs/serving.md`` that classifies in the browser: built as it is written there, with no other network."""

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import loaders
from tests.browser.conftest import PATIENCE_MS
from tests.browser.test_axe import barriers
from tests.family_cases import Case

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SERVING = Path(__file__).parents[2] / "docs" / "serving.md"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> loaders.Hub:
    return loaders.made(Case("bert", "classification"), tmp_path_factory.mktemp("hub"))


@pytest.fixture(scope="module")
def url(hub: loaders.Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the page is served, as its block of commands puts it together."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm here")
    try:
        library = loaders.npm_library()
    except subprocess.SubprocessError as error:
        pytest.skip(f"npm does not bring transformers.js here: {error}")
    home = tmp_path_factory.mktemp("page")
    (home / "node_modules").symlink_to(library)
    (home / "smaller").symlink_to(hub.directory.parent)
    shutil.copy(SERVING.with_name("serve_browser.html"), home)
    block = next(part for part in re.findall(r"```sh\n(.*?)```", SERVING.read_text(), re.DOTALL) if "npm" in part)
    fetch, *building, serve = block.splitlines()
    assert (fetch.split()[:2], serve) == (["npm", "install"], "python -m http.server -d page")
    subprocess.run(["bash", "-ec", "\n".join(building)], cwd=home, check=True)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(home / "page"))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def answered(page: Any, text: str) -> dict[str, float]:
    """The share of each label, as the page has it after a text was typed."""
    page.evaluate("document.getElementById('answer').replaceChildren()")
    page.get_by_label("Text").fill(text)
    page.locator("#answer li").first.wait_for()
    told = page.locator("#answer li").evaluate_all(
        "rows => rows.map(row => [row.children[0].textContent, row.querySelector('meter').value])"
    )
    return dict(told)


def test_the_page_answers_as_the_model_does_and_asks_nobody_else(browser: Any, url: str, hub: loaders.Hub) -> None:
    shares = {}
    for dtype, logits in (("fp32", hub.logits), ("q8", hub.int8)):
        exponents = np.exp(logits - logits.max())
        shares[dtype] = dict(zip(("LABEL_0", "LABEL_1", "LABEL_2"), exponents / exponents.sum(), strict=True))
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page, asked, complaints = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        for dtype, tolerance in (("fp32", 1e-3), ("q8", 1e-2)):
            page.goto(f"{url}?dtype={dtype}")
            page.get_by_text("Ready after").wait_for()
            assert answered(page, loaders.TEXT) == pytest.approx(shares[dtype], abs=tolerance)
            assert re.fullmatch(r"\d+\.\d ms", page.get_by_role("status").inner_text())
            graph = {"fp32": "model.onnx", "q8": "model_quantized.onnx"}[dtype]
            assert f"{url}hub/onnx/{graph}" in asked
        context.set_offline(True)
        assert answered(page, "word9 word8") != shares["q8"]
        context.set_offline(False)
        assert barriers(page) == []
        refused = page.evaluate("fetch('http://127.0.0.2:9/').then(() => 'sent', error => error.message)")
        assert "Failed to fetch" in refused
    finally:
        context.close()
    assert [one for one in asked if not one.startswith((url, "blob:", "data:"))] == []
    assert [one for one in complaints if "Content Security Policy" not in one or "127.0.0.2" not in one] == []


def test_what_is_missing_is_said(browser: Any, url: str) -> None:
    page = browser.new_page()
    try:
        page.goto(f"{url}?dtype=fp16")
        page.get_by_text("It does not load").wait_for(timeout=PATIENCE_MS)
        assert "model_fp16.onnx" in page.get_by_role("status").inner_text()
        assert page.get_by_label("Text").is_disabled()
    finally:
        page.close()

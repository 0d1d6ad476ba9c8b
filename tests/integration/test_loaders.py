"""The form ``hub`` in the loaders that people serve with: transformers.js in Node, OpenVINO, ONNX Runtime, transformers.

``python -m benchmarks.loaders`` does the same for every family and task, and writes ``docs/loaders.md``.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf import text_format

from benchmarks import loaders
from benchmarks.loaders_schema import NoTaskError, by_tei, by_triton
from tests.family_cases import Case

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SERVING = Path(__file__).parents[2] / "docs" / "serving.md"
CASES = [
    Case("bert", "classification"),
    Case("distilbert", "question_answering"),
    Case("modernbert", "token_classification"),
]


@pytest.fixture(scope="module")
def hubs(tmp_path_factory: pytest.TempPathFactory) -> Sequence[loaders.Hub]:
    return [loaders.made(case, tmp_path_factory.mktemp("hub") / str(case)) for case in CASES]


@pytest.mark.parametrize("name", ["transformers", "onnxruntime", "openvino", "TEI", "Triton"])
def test_a_loader_opens_it_and_gives_the_models_logits(hubs: Sequence[loaders.Hub], name: str) -> None:
    if name == "openvino":
        pytest.importorskip("openvino")
    for hub in hubs:
        if name == "TEI" and hub.task not in loaders.SEQUENCE:
            with pytest.raises(NoTaskError):
                loaders.LOADS[name](hub)
        else:
            loaders.LOADS[name](hub)


def test_optimum_and_sentence_transformers_give_the_models_logits(hubs: Sequence[loaders.Hub]) -> None:
    try:
        loaders.older_packages()
    except subprocess.SubprocessError as error:
        pytest.skip(f"pip does not bring Optimum here: {error}")
    assert loaders.in_optimum(hubs) == [("", "")] * len(hubs)


def test_transformers_js_gives_the_models_logits(hubs: Sequence[loaders.Hub]) -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("there is no Node here")
    try:
        loaders.npm_library()
    except subprocess.SubprocessError as error:
        pytest.skip(f"npm does not bring transformers.js here: {error}")
    assert loaders.in_js(hubs) == [""] * len(hubs)


def test_the_page_s_javascript_classifies(hubs: Sequence[loaders.Hub], tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("there is no Node here")
    try:
        library = loaders.npm_library()
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"npm does not bring transformers.js here: {error}")
    (code,) = re.findall(r"```js\n(.*?)```", SERVING.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "node_modules").symlink_to(library)
    (tmp_path / "page.mjs").write_text(code.replace("/path/to/smaller/hub", str(hubs[0].directory)), encoding="utf-8")
    done = subprocess.run(["node", "page.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300)
    assert "LABEL_" in done.stdout


def test_the_page_s_openvino_compiles(hubs: Sequence[loaders.Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino")
    (code,) = re.findall(r"```python\n(.*?)```", SERVING.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(hubs[0].directory)
    named: dict[str, Any] = {}
    exec(code.replace("smaller/hub/", ""), named)
    assert named["model"](dict(hubs[0].inputs))[0].shape == (1, 3)


def test_the_page_s_optimum_loads(hubs: Sequence[loaders.Hub]) -> None:
    try:
        packages = loaders.older_packages()
    except subprocess.SubprocessError as error:
        pytest.skip(f"pip does not bring Optimum here: {error}")
    (code,) = re.findall(r"```py\n(.*?)```", SERVING.read_text(encoding="utf-8"), re.DOTALL)
    code = code.replace("smaller/hub", str(hubs[0].directory)) + "print(model.config.num_labels)"
    env = {**os.environ, "PYTHONPATH": str(packages)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300, env=env
    )
    assert done.stdout.split() == ["3"]


def test_texts_are_answered_over_http(hubs: Sequence[loaders.Hub]) -> None:
    command = [sys.executable, str(SERVING.with_name("serve_http.py")), str(hubs[0].directory), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().rsplit(maxsplit=1)[1])

            def post(content: object) -> tuple[int, dict[str, Any]]:
                asked = urllib.request.Request(f"http://127.0.0.1:{port}", data=json.dumps(content).encode())
                try:
                    with urllib.request.urlopen(asked, timeout=60) as answer:
                        return answer.status, json.load(answer)
                except urllib.error.HTTPError as error:
                    return error.code, json.load(error)

            status, told = post({"texts": [loaders.TEXT, "word9"]})
            assert status == 200
            assert [sum(row["probabilities"].values()) for row in told["answers"]] == pytest.approx([1, 1])
            shares = np.exp(hubs[0].int8 - hubs[0].int8.max())
            assert post({"texts": [loaders.TEXT]})[1]["answers"][0]["probabilities"] == pytest.approx(
                dict(zip(("LABEL_0", "LABEL_1", "LABEL_2"), shares / shares.sum(), strict=True)), abs=1e-4
            )
            assert post({"texts": "one"}) == (400, {"error": 'give {"texts": ["a text", ...]}'})
            assert [post(content)[0] for content in ({}, [], {"texts": []}, {"texts": [1]})] == [400] * 4
        finally:
            server.kill()


def test_a_graph_that_computes_in_float_is_found(hubs: Sequence[loaders.Hub]) -> None:
    with pytest.raises(AssertionError, match=r"products in float32"):
        loaders.check_int8(hubs[0].directory / "onnx" / "model.onnx")


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("tokenizer.json", None, "no tokenizer.json"),
        ("config.json", lambda keys: keys.pop("hidden_size"), "config.json has no hidden_size"),
        ("config.json", lambda keys: keys.update(n_embd=32), "hidden_size comes twice"),
        ("config.json", lambda keys: keys.update(label2id={"a": "0"}), "{'a': '0'}"),
        ("config.json", lambda keys: keys.update(pad_token_id=-1), "pad_token_id is"),
        ("tokenizer_config.json", lambda keys: keys.update(padding_side="middle"), "middle"),
    ],
)
def test_what_tei_reads_is_missed_where_it_is_gone(
    file: str, change: Any, said: str, hubs: Sequence[loaders.Hub], tmp_path: Path
) -> None:
    path = shutil.copytree(hubs[0].directory, tmp_path / "hub") / file
    if change is None:
        path.unlink()
    else:
        keys = json.loads(path.read_text(encoding="utf-8"))
        change(keys)
        path.write_text(json.dumps(keys), encoding="utf-8")
    with pytest.raises(AssertionError, match=re.escape(said)):
        by_tei(path.parent, "classification")


def test_a_graph_of_one_batch_is_none_for_triton(hubs: Sequence[loaders.Hub], tmp_path: Path) -> None:
    copy = shutil.copytree(hubs[0].directory, tmp_path / "hub")
    path = copy / "onnx" / "model.onnx"
    model = onnx.load(path)
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(model, path)
    with pytest.raises(AssertionError, match="logits of classification: the first dimension is fixed"):
        by_triton(copy, "classification")


def test_the_page_s_triton_configuration_is_one() -> None:
    (text,) = re.findall(r"```protobuf\n(.*?)```", SERVING.read_text(encoding="utf-8"), re.DOTALL)
    config = text_format.Parse(text, triton_schema().ModelConfig())
    assert (config.name, config.backend, config.max_batch_size) == ("smaller", "onnxruntime", 32)
    assert config.HasField("dynamic_batching")
    with pytest.raises(text_format.ParseError, match="no field named"):
        text_format.Parse(text.replace("max_batch_size", "batch_size"), triton_schema().ModelConfig())


def triton_schema() -> Any:
    """The module of Triton's client that a configuration is read with; the package around it wants grpc."""
    package = importlib.util.find_spec("tritonclient")
    if package is None:
        pytest.skip("tritonclient is not installed")
    (home,) = package.submodule_search_locations or ()
    spec = importlib.util.spec_from_file_location("model_config_pb2", Path(home, "grpc", "model_config_pb2.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

"""The page of a finished job: first what came of it and which form to take, then how it came about."""

import html
import io
import random
import re
import tarfile
from typing import Any

import pytest

from store.tables.jobs import Job
from tests.axformer.drawing.test_curve import some_point
from tests.hostile.names import NAMES

FILES = {
    "README.md": b"# card",
    "artifact.tar.gz": b"all",
    "model/config.json": b"{}",
    "model/model.safetensors": b"x" * 600,
    "hub/onnx/model_quantized.onnx": b"y" * 512,
    "plan.json": b"{}",
    "report.html": b"<!doctype html><p>report</p>",
}
FINDING = {"data": "test", "verdict": "gain", "sentence": "A <gain>.", "advice": "Take it.", "answers": ""}
DOUBT = "Half of the rows were <seen>."
CERTIFICATE = {"points": 1.0, "sentence": "At most one point was lost."}


def form(name: str, directory: str | None, ms: float, accuracy: float, ends: tuple[float, float]) -> dict[str, Any]:
    speed = [
        {"batch": 1, "length": None, "p50_ms": ms, "inputs_per_second": 1000 / ms},
        {"batch": 32, "length": None, "p50_ms": 20 * ms, "inputs_per_second": 1600 / ms},
    ]
    change = None if directory is None else {"differences": {"accuracy": {"value": 0.0, "interval": list(ends)}}}
    made = {"name": name, "made": True, "directory": directory, "bytes": 90_000_000, "speed": speed}
    return made | {"test": {"loss": 0.3, "accuracy": accuracy}, "test_change": change}


FORMS = {
    "base_form": form("base", None, 10.0, 0.85, (0, 0)),
    "forms": [
        form("compact", "model", 9.0, 0.85, (-0.01, 0.01)),
        form("onnx_int8", "hub", 2.0, 0.844, (-0.009, 0.001)),
    ],
}


@pytest.fixture
def finished(stage, make_trial):
    job_id = stage.running([make_trial(0), make_trial(1)])
    stage.succeed(job_id, FILES, finding=FINDING, certificate=CERTIFICATE, doubt=DOUBT, **FORMS)
    return job_id


def test_the_result_comes_first_then_the_pass_then_files_and_last_what_deletes_it(member, finished):
    text = member.get(f"/jobs/{finished}").text
    order = [
        "At most one point was lost.",
        '<p class="bad" role="alert" id="doubt"><strong>Half of the rows were &lt;seen&gt;.</strong></p>',
        "<strong>A &lt;gain&gt;.</strong> Take it.",
        "What you can deploy",
        "Deploy hub/onnx/model_quantized.onnx (ONNX int8): 5.0 times as fast with one input, "
        "held-out accuracy 84.40 (before 85.00).",
        "Download ONNX int8",
        "Open report",
        "onnxruntime.InferenceSession(&#34;hub/onnx/model_quantized.onnx&#34;)",
        "Before and after",
        "<dt>Trials</dt>",
        'id="chart"',
        '<h2 id="log-title">Log',
        "SHA-256",
        f"/jobs/{finished}/delete",
    ]
    text = text.replace('"hub/onnx/model_quantized.onnx"', "&#34;hub/onnx/model_quantized.onnx&#34;")
    places = [text.index(one) for one in order]
    assert places == sorted(places)
    assert text.count("<dt>Trials</dt>") == 1


@pytest.mark.parametrize("name", ["".join(NAMES)])
def test_names_from_outside_are_text_on_the_page_of_a_job(member, stage, make_trial, name):
    def tags(called: str) -> list[str]:
        job_id = stage.running([make_trial(0), make_trial(1)])
        told = {
            "finding": {**FINDING, "sentence": called},
            "doubt": called,
            "certificate": {**CERTIFICATE, "sentence": called},
        }
        lost = [{"name": called, "count": 9, "before": 0.9, "after": 0.1, "p_value": 0.001}]
        base, *forms = (FORMS["base_form"], *(dict(form) for form in FORMS["forms"]))
        forms[-1] |= {"cost": {**forms[-1]["test_change"], "classes": lost}}
        stage.succeed(job_id, FILES, **told, base_form=base, forms=forms)
        text = member.get(f"/jobs/{job_id}").text
        assert "\x1b[31m" not in text
        return re.findall(r"<[a-zA-Z/!][^>\s]*", text)

    assert tags(name) == tags("harmless")


def test_the_advised_form_is_marked_and_its_download_is_the_main_one(member, finished):
    text = member.get(f"/jobs/{finished}").text
    (best,) = re.findall(r'<tr class="best">(.*?)</tr>', text)
    assert "ONNX int8" in best
    assert "-0.60<" not in best
    assert "-0.60 [-0.90, +0.10]" in best
    (main,) = re.findall(r'<a class="button main" id="([^"]+)"', text)
    assert main == "take-onnx_int8"


def test_what_else_the_path_offers_stands_below_the_advice(member, finished, sessions):
    path = [some_point(seq, random.Random(seq), ("test",), kept=seq == 0) for seq in (0, 9)]
    with sessions.begin() as session:
        session.get_one(Job, finished).path = [point.model_dump(mode="json") for point in path]
    text = member.get(f"/jobs/{finished}").text
    told = re.search(r'id="beyond">The path has more: 1.43 times fewer operations, .*?/path\?within=([\d.]+)', text)
    assert told is not None
    assert "9" in re.findall(r"Trial (\d+)", member.get(f"/jobs/{finished}/path?within={told[1]}").text)
    form = {"form": "compact", "certificate": {}, "times": 2.0, "certified": [9], "next": "", "best_p_value": None}
    form |= {"labelled": 0, "left": 0, "further": {}}
    with sessions.begin() as session:
        job = session.get_one(Job, finished)
        job.summary = {**job.summary, "labelled": {"labels": 1, "disagreed": 0, "forms": [form]}}
    assert 'id="beyond"' not in member.get(f"/jobs/{finished}").text, "labels have certified it"


def test_the_page_loads_an_embedder_by_its_library_and_gives_a_reranker_a_pair(member, stage, make_trial):
    def page(metric: str, *forms: Any) -> str:
        job_id = stage.running([make_trial(0), make_trial(1)])
        base = {
            "validation": {"loss": 0.0, metric: 1.0},
            "test": None,
            "parameters": 10,
            "bytes": 40,
            "operations": 900,
        }
        stage.succeed(job_id, FILES, base=base, base_form=FORMS["base_form"], forms=list(forms))
        return html.unescape(member.get(f"/jobs/{job_id}").text)

    compact, int8 = FORMS["forms"]
    assert 'model = SentenceTransformer("model")' in page("same_nearest", compact)
    assert 'model = axformer.load("model")' in page("accuracy", compact)
    slow = {**compact, "speed": FORMS["base_form"]["speed"]}
    assert 'from_pretrained("hub")("a query", "a passage", return_tensors' in page("mrr_10", slow, int8)


def test_files_are_in_groups_of_forms(member, finished):
    groups = re.findall(r'<details class="files"( open)?><summary>([^<]+)<', member.get(f"/jobs/{finished}").text)
    assert groups == [("", "PyTorch"), ("", "ONNX int8"), (" open", "About the result")]


def test_a_form_is_downloaded_as_one_archive(member, finished):
    answer = member.client.get(f"/jobs/{finished}/forms/compact")
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert f'filename="{finished}-compact.tar"' in answer.headers["content-disposition"]
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as archive:
        held = {name: archive.extractfile(name).read() for name in archive.getnames()}
    assert held == {name: content for name, content in FILES.items() if name.startswith("model/")}
    assert member.get(f"/jobs/{finished}/forms/onnx").status_code == 404


def test_the_report_opens_as_a_page_that_can_do_nothing(member, finished):
    answer = member.get(f"/jobs/{finished}/report")
    assert answer.content == FILES["report.html"]
    assert answer.headers["content-disposition"] == "inline"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'")
    assert "script" not in policy
    assert "allow" not in policy


def test_what_is_downloaded_or_shown_is_in_the_audit_log(member, finished, crew):
    for page in ("files/plan.json", "forms/compact", "forms/onnx", "report", ""):
        member.get(f"/jobs/{finished}/{page}")
    entries = member.client.get("/v1/audit", headers=crew.headers).json()["data"]
    shown = {entry["object_id"] for entry in entries if entry["action"] == "artifact.download"}
    assert shown == {f"{finished}/{name}" for name in ("plan.json", "model/", "report.html")}


@pytest.mark.parametrize("page", ["/forms/compact", "/report"])
def test_another_team_gets_none_of_it(rival, finished, page):
    assert rival.get(f"/jobs/{finished}{page}").status_code == 404


def test_a_job_of_an_earlier_version_shows_before_and_after_instead(member, stage, make_trial):
    job_id = stage.running([make_trial(0)])
    stage.succeed(job_id, {"model/config.json": b"{}"}, finding=FINDING)
    text = member.get(f"/jobs/{job_id}").text
    assert "What you can deploy" not in text
    assert text.index("A &lt;gain&gt;.") < text.index(">Before and after<") < text.index("Download PyTorch")
    assert "Open report" not in text


@pytest.mark.parametrize("reached", [True, False])
def test_a_target_stands_first_and_a_missed_one_alarms(member, stage, make_trial, reached):
    job_id = stage.running([make_trial(0), make_trial(1)])
    target = {"reached": reached, "sentence": "The target was or was not reached."}
    stage.succeed(job_id, FILES, finding=FINDING, target=target, **FORMS)
    text = member.get(f"/jobs/{job_id}").text
    assert text.index(target["sentence"]) < text.index(FINDING["advice"])
    assert ('role="alert" id="target"' in text) is not reached

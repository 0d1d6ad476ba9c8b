"""The page of a group of jobs."""

import json

import pytest

GRID = {
    "name": "does it <hold>?",
    "sets": [{"name": "rte", "checkpoints": [{"uri": "hf://acme/a"}], "validation": {"uri": "s3://acme/dev.csv"}}],
    "settings": [{"name": "paper", "preset": "paper"}, {"name": "confirm", "config": {"confirm": 0.5}}],
}


FIGURES = {
    **{"validation": {"loss": 0.4}, "test": None, "parameters": 100, "bytes": 40, "operations": 900},
    **{"encoder_parameters": 50, "latency_ms": 1.5},
}


@pytest.fixture
def group(client, crew):
    return client.post("/v1/groups", json=GRID, headers=crew.headers).json()


def difference(value: float) -> dict:
    return {"value": value, "interval": [value, value]}


def test_it_shows_the_jobs_and_then_what_came_of_them(member, group, stage):
    page = f"/groups/{group['id']}"
    text = member.get(page).text
    assert "does it &lt;hold&gt;?" in text
    assert "No job has succeeded yet" in text
    for cell, value in zip(group["cells"], (-0.0123, 0.0045), strict=True):
        assert f"/jobs/{cell['job']}" in text
        stage.begin(cell["job"])
        changed = {"differences": {"accuracy": difference(0.01), "loss": difference(value)}, "mcnemar": None}
        finding = {"verdict": "gain" if value < 0 else "no_reliable_gain"}
        stage.succeed(
            cell["job"],
            {},
            comparison={"validation": changed, "test": changed},
            finding=finding,
            base=FIGURES,
            pruned=FIGURES | {"parameters": 90, "encoder_parameters": 40, "latency_ms": 1.0},
            one_position_ms=1.2,
        )
    text = member.get(page).text
    for shown in ("10.0 %", "20.0 %", "1.50x", "1.20x", "robust, confirm=0.5"):
        assert shown in text
    for shown in ("held-out data", "-0.0123", "+0.0045", "+0.0100", "1 better", "1 no difference", "1 of 1"):
        assert shown in text
    assert text.index(">loss<") < text.index(">accuracy<")
    drawn = member.get(f"{page}/chart?set=rte&width=500").text
    assert "paper, paper 1.00, 1.50 times as fast" in drawn
    assert "paper, paper 1.00, 1.50 times as fast" in text
    assert 'width="500"' in drawn
    assert not member.get(f"{page}/chart?set=other").text


def test_a_job_leads_to_its_group(member, group):
    assert f'href="/groups/{group["id"]}"' in member.get(f"/jobs/{group['cells'][0]['job']}").text


def test_a_group_of_another_team_is_not_there(rival, group):
    assert rival.get(f"/groups/{group['id']}").status_code == 404


def test_it_moves_until_all_jobs_have_ended(member, group, stage):
    page = f"/groups/{group['id']}"
    assert f'data-live="{page}/live"' in member.get(page).text
    for cell in group["cells"]:
        stage.begin(cell["job"])
        stage.succeed(cell["job"], {})
    with member.client.stream("GET", f"{page}/live") as answer:
        lines = [line for line in answer.iter_lines() if line]
    parts = json.loads(next(line for line in lines if line.startswith("data:")).removeprefix("data:"))
    assert "succeeded" in parts["now"]
    assert lines[-2:] == ["event: end", "data: {}"]
    assert "data-live" not in member.get(page).text


def test_the_board_lists_it(member, rival, group, stage):
    stage.begin(group["cells"][0]["job"])
    stage.succeed(group["cells"][0]["job"], {})
    text = member.get("/").text
    assert f'href="/groups/{group["id"]}"' in text
    assert '<progress class="bar-of" value="1" max="2"' in text
    assert group["id"] not in rival.get("/").text

"""The action for GitHub: its description is whole, and its script prunes, gates, and shows the card."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_rows, write_rows

ACTION = Path(__file__).parents[1] / ".github" / "actions" / "axformer"
OPTIONS = "--forms compact --set accept_poor_model=true  --set budgets=[0.9]"


@pytest.fixture(scope="module")
def action() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))
    return content


def inputs_of(step: dict[str, Any]) -> set[str]:
    return set(re.findall(r"\$\{\{ inputs\.(\w+) }}", " ".join(step.get("env", {}).values())))


def test_every_input_gets_to_a_step_by_its_environment_and_none_into_a_script(action: dict[str, Any]) -> None:
    steps = action["runs"]["steps"]
    assert action["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" and "${{" not in step["run"] for step in steps)
    assert set().union(*map(inputs_of, steps)) == set(action["inputs"])
    assert all(given.keys() & {"required", "default"} for given in action["inputs"].values())


def test_the_script_reads_what_it_is_given_and_writes_what_is_read(action: dict[str, Any]) -> None:
    script = (ACTION / "prune.sh").read_text("utf-8")
    subprocess.run(["bash", "-n", ACTION / "prune.sh"], check=True)
    (step,) = [step for step in action["runs"]["steps"] if step.get("id") == "prune"]
    given = {"GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"} | set(step["env"])
    assert set(re.findall(r"\$\{?([A-Z_]{4,})\b", script)) == given
    assert set(re.findall(r'f?"(\w+)=\{', script)) == set(action["outputs"])


class Step:
    """The script as a runner runs it, in a directory with a checkpoint and rows."""

    def __init__(self, directory: Path, action: dict[str, Any]) -> None:
        self.directory = directory
        self.summary, self.output = directory / "summary.md", directory / "output.txt"
        self._defaults = {name: given.get("default", "") for name, given in action["inputs"].items()}

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        given = self._defaults | {"checkpoint": "mine", "data": "dev.jsonl", "options": OPTIONS} | inputs
        del given["package"]
        environment = {name.upper(): value for name, value in given.items()}
        files = {"GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_OUTPUT": str(self.output)}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["bash", ACTION / "prune.sh"],
            cwd=self.directory,
            env=os.environ | environment | files | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def step(tmp_path: Path, action: dict[str, Any]) -> Step:
    save_tiny_checkpoint(tmp_path / "mine", tiny_config(layers=1))
    for name, seed in (("dev", 0), ("other", 1)):
        write_rows(tmp_path / f"{name}.jsonl", tiny_rows(40, seed=seed))
    return Step(tmp_path, action)


@pytest.mark.slow
def test_a_result_that_does_not_meet_the_gate_fails_the_step_and_is_shown(step: Step) -> None:
    done = step.run(goal="speedup=1.05", require="certified", certify="other.jsonl")
    assert done.returncode == 4, done.stderr
    advice = json.loads((step.directory / "pruned" / "report.json").read_bytes())["advice"]
    told = dict(line.split("=", 1) for line in step.output.read_text().splitlines())
    assert told == {"result": "pruned", "form": advice["form"] or "", "certified": str(advice["certified"]).lower()}
    summary = step.summary.read_text("utf-8")
    assert summary.startswith("# mine: ")
    assert "## What you can deploy" in summary
    assert "](plan.svg)" not in summary
    deployed = advice["form"] if advice["form"] and not advice["of_untouched"] else "compact"
    assert summary.partition(f"## Certified on other rows: {deployed}\n")[2].strip().startswith("- ")


@pytest.mark.slow
def test_a_run_that_cannot_be_made_fails_the_step_without_a_summary(step: Step) -> None:
    done = step.run(data="nowhere.jsonl")
    assert (done.returncode, "nowhere.jsonl" in done.stderr) == (2, True), done.stderr
    assert not step.summary.exists()
    assert not step.output.exists()

"""Laws of a run for one target: only what is needed is made, and what is decided and said is as if all had been."""

from pathlib import Path
from typing import Any

import pytest

from axformer.plan.plan import Plan
from axformer.run import PruningRun
from axformer.scores.measured import Measured
from axformer.wire.report import Report
from axformer.wire.run import read_run
from tests.tiny_models import answered_rows, answering_model, tiny_rows, tiny_tokenizer, write_rows


class _All(PruningRun):
    """A run that makes every model on the way to its target."""

    def _is_of_use(self, plan: Plan, measured: Measured) -> bool:
        return False


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A model that is always right on rows named ``good``, and worse than guessing on those named ``one``, most of
    which are of one class."""
    files, model = tmp_path_factory.mktemp("given"), answering_model(3)
    model.save_pretrained(files / "model")
    tiny_tokenizer().save_pretrained(files / "model")
    rows = {
        "good": answered_rows(model, 90, (0, 1, 2)),
        "texts": [{"text": row["text"]} for row in tiny_rows(40, seed=3)],
        "one": [row | {"label": int(number % 9 > 0)} for number, row in enumerate(tiny_rows(90, seed=6))],
    }
    return {"model": str(files / "model")} | {
        name: str(write_rows(files / f"{name}.jsonl", each)) for name, each in rows.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "is_useless"),
    [
        ({"validation": "good", "at_most": 90.0}, False),
        ({"validation": "good", "at_most": 50.0, "goal": "operations=90"}, True),
        ({"validation": "good", "at_most": 0.01}, True),
        ({"validation": "good", "test": "one", "at_most": 90.0}, True),
        ({"validation": "one", "test": "good", "at_most": 90.0}, False),
        ({"validation": "good", "calibrate": "texts", "at_most": 90.0, "polish": 1}, False),
        ({"validation": "good", "calibrate": "texts", "at_most": 0.01, "polish": 1}, True),
    ],
)
def test_where_the_target_is_of_use_nothing_else_is_made_and_no_word_of_the_outcome_depends_on_that(
    given: dict[str, str], asked: dict[str, Any], is_useless: bool, tmp_path: Path
) -> None:
    inputs = {name: given.get(value, value) if isinstance(value, str) else value for name, value in asked.items()}
    knobs = {"table_rows": 16, "max_length": 24, "accept_poor_model": True, "polish": inputs.pop("polish", 0)}
    words = {"checkpoint": given["model"], "goal": "operations=4", "config": knobs, "forms": ["compact"]}
    settled = read_run(words | inputs).settled()
    run, everything = PruningRun.open(settled), _All.open(settled)
    trials, all_trials = list(run.trials()), list(everything.trials())
    assert len(all_trials) > 2, "there are models on the way"
    reports = [Report.model_validate(one.publish(tmp_path / str(id(one)))) for one in (run, everything)]
    outcomes = [report.target for report in reports]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0] is not None
    assert (outcomes[0].reached, outcomes[0].usable is False) == (True, is_useless)
    assert run.plan == everything.plan
    needed = all_trials if is_useless else [all_trials[0], all_trials[-1]]
    assert [(one.element, one.plan, one.loss) for one in trials] == [
        (one.element, one.plan, one.loss) for one in needed
    ]
    for stopped in range(1, len(trials)):
        again = list(run.trials(replay=trials[:stopped]))
        assert [one.model_dump(exclude={"seconds"}) for one in again] == [
            one.model_dump(exclude={"seconds"}) for one in trials
        ]

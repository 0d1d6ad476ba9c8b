"""Several processes measure what one does, and decide as one does."""

import psutil
import pytest

from axformer.config import PassConfig, make_config
from axformer.data.reading import rows_of
from axformer.errors import ConfigError
from axformer.evaluation import shard_process
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import prepare
from axformer.run import PruningRun
from tests.family_cases import Case, checkpoint_of, data_of
from tests.tiny_models import tiny_rows

ROWS = rows_of(tiny_rows(30, labels=3, pairs=True))
KNOBS = {"batch_tokens": 60, "majority_fraction": 0.3, "attention_top_k": 5}


def decisions(checkpoint: Checkpoint, config: PassConfig, shards: int) -> list[tuple[object, ...]]:
    run = PruningRun(checkpoint, prepare(ROWS, checkpoint, config), None, config, shards)
    return [(trial.element, trial.verdict, pytest.approx(trial.loss, rel=1e-5)) for trial in run.trials()]


def shards_running() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if shard_process.__name__ in one.cmdline()]


@pytest.mark.parametrize(("family", "precision"), [("bert", "guarded"), ("albert", "float32"), ("llama", "float32")])
def test_shards_decide_as_one_process(family: str, precision: str) -> None:
    checkpoint = checkpoint_of(Case(family, "classification"))
    config = make_config("paper", KNOBS | {"precision": precision, "early_decision": False})
    assert decisions(checkpoint, config, 2) == decisions(checkpoint, config, 1)


def test_questions_in_several_windows_may_be_in_several_shards() -> None:
    case = Case("bert", "question_answering")
    config = make_config("paper", {"hard_attention": False, "refine_margin": 1.0, "early_decision": False})
    runs = [PruningRun(checkpoint_of(case), data_of(case), None, config, shards) for shards in (1, 2)]
    whole, sharded = ([(trial.element, trial.verdict, trial.helped) for trial in run.trials()] for run in runs)
    assert sharded == whole


def test_a_shard_that_dies_is_an_error_that_says_so() -> None:
    checkpoint = checkpoint_of(Case("bert", "classification"))
    config = make_config("paper", KNOBS)
    run = PruningRun(checkpoint, prepare(ROWS, checkpoint, config), None, config, 2)
    trials = run.trials()
    next(trials)

    for process in shards_running():
        process.kill()
    with pytest.raises(RuntimeError, match=r"ended by itself \(exit code -9\)"):
        list(trials)
    assert not shards_running()


def test_numbers_of_shards_that_cannot_be_are_refused() -> None:
    checkpoint = checkpoint_of(Case("bert", "classification"))
    data = prepare(ROWS, checkpoint, PassConfig())
    with pytest.raises(ConfigError, match="shards=0"):
        PruningRun(checkpoint, data, None, PassConfig(), 0)
    for config in (PassConfig(evaluate_in="int8"), PassConfig(tolerance=0.1, confirm=0.3, within_points=1)):
        with pytest.raises(ConfigError, match=f"passes with {config.one_process} run in one process"):
            PruningRun(checkpoint, data, None, config, 2)

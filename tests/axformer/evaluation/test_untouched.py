"""The untouched model is computed once for a look and the pass behind it, and nothing that is decided depends on the look."""

from collections.abc import Iterator, Sequence

import pytest
import torch

from axformer.config import PassConfig, make_config
from axformer.intake.dataset import prepare
from axformer.opening import Inputs
from axformer.plan.trial import Trial
from axformer.run import PruningRun
from axformer.scores.measured import measure
from tests.family_cases import Case, checkpoint_of, data_of

RUNS = {
    "paper": {},
    "confirmed": {"confirm": 0.3},
    "trade": {"tolerance": 0.5, "confirm": 0.3, "within_points": 3},
}
CASES = [Case("bert", "classification"), Case("bert", "question_answering"), Case("gpt2", "causal_lm")]


def run_of(case: Case, **knobs: object) -> PruningRun:
    config = make_config(
        "paper", {"neuron_group_size": 24, "attention_top_k": 3, "batch_tokens": 60, "accept_poor_model": True} | knobs
    )
    assert isinstance(config, PassConfig)
    checkpoint = checkpoint_of(case)
    return PruningRun(Inputs(checkpoint, prepare(data_of(case).rows, checkpoint, config)), config)


def timeless(trials: Sequence[Trial]) -> list[Trial]:
    return [trial.model_copy(update={"seconds": 0.0}) for trial in trials]


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    cores = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(cores)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_look_changes_no_trial(name: str, threads: int) -> None:
    case, knobs = CASES[0], RUNS[name]
    whole = list(run_of(case, **knobs).trials())
    looked = run_of(case, **knobs)
    looked.look()
    assert torch.get_num_threads() == threads, "cores are given back between the look and the pass"
    assert timeless(list(looked.trials())) == timeless(whole)
    assert timeless(list(looked.trials())) == timeless(whole), "also a second time, without what the look has kept"
    for cut in (1, len(whole) // 2, len(whole)):
        resumed = run_of(case, **knobs)
        resumed.look()
        assert timeless(list(resumed.trials(whole[:cut]))) == timeless(whole)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_look_sees_what_the_model_makes_of_every_row(case: Case, threads: int) -> None:
    run = run_of(case)
    checkpoint, samples = run._checkpoint, run.deciding.samples
    plain, seen = measure(checkpoint.model, checkpoint.task, samples), run._ground.untouched.measured(keep=False)
    assert torch.allclose(seen.losses, plain.losses, rtol=1e-4, atol=1e-5)
    assert seen.figures == pytest.approx(plain.figures, rel=1e-4)
    assert next(iter(run.trials())).loss == pytest.approx(seen.losses.mean().item(), rel=1e-6)
    assert run._ground.untouched.measured(keep=False) is seen, "trials do not write into it"


def test_the_base_of_a_pass_runs_nothing_where_somebody_has_looked() -> None:
    run = run_of(CASES[0])
    passes: list[None] = []
    cores = torch.get_num_threads()
    torch.set_num_threads(1)  # else each thread has a model of its own
    hook = run._checkpoint.model.register_forward_pre_hook(lambda *_: passes.append(None))
    try:
        look = run.look()
        assert len(passes) == len(run.deciding.samples.batches)
        trials = run.trials()
        base = next(trials)
        assert len(passes) == len(run.deciding.samples.batches)
        next(trials)
        assert len(passes) > len(run.deciding.samples.batches)
        trials.close()
    finally:
        hook.remove()
        torch.set_num_threads(cores)
    assert base.loss == pytest.approx(look.figures["loss"], rel=1e-6)

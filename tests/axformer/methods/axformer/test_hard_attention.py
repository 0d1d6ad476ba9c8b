"""Hard attention is judged by the inputs of more than K tokens, which it can change, and left out where they are too few."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from axformer.config import PassConfig, make_config
from axformer.data.batches import Samples
from axformer.data.encoding import without_labels
from axformer.data.reading import rows_of
from axformer.evaluation.base import Evaluator, Part
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.methods.axformer.algorithm import search
from axformer.methods.axformer.judge import FEWEST_CHANGED, tries_hard_attention, voters_of
from axformer.opening import Inputs
from axformer.plan.plan import Plan
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.run import PruningRun
from tests.plain import PlainEvaluator
from tests.runs import progress_of
from tests.tiny_models import tiny_model, tiny_rows, tiny_tokenizer

CHECKPOINT = from_memory(tiny_model(), tiny_tokenizer())
ROWS = rows_of(tiny_rows(60))
"""Texts of 3 to 14 tokens."""


def run_of(preset: str, top_k: int, **knobs: object) -> PruningRun:
    config = make_config(preset, {"attention_top_k": top_k, **knobs})
    return PruningRun(Inputs(CHECKPOINT, prepare(ROWS, CHECKPOINT, config)), config)


def samples_of(lengths: list[int], copies: int = 1) -> Samples:
    """Inputs of these lengths, all different, each so many times."""
    ids = [[place, *range(length - 1)] for place, length in enumerate(lengths)] * copies
    encoded = without_labels({"input_ids": ids})
    return Samples((), encoded, torch.tensor(encoded.sample_of_row), torch.tensor(encoded.lengths))


def hard(trials: list[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.phase is Phase.HARD_ATTENTION]


@pytest.mark.parametrize("preset", ["paper", "published", "robust"])
def test_where_all_texts_are_short_it_is_not_tried_and_that_is_said(preset: str) -> None:
    run = run_of(preset, 14)
    trials = list(run.trials())
    assert hard(trials) == []
    (note,) = run.notes
    assert note == (
        "hard attention is not tried: only 0 of 60 different inputs have more than attention_top_k=14 tokens, and it can "
        "change no others (it takes 20)"
    )
    assert progress_of(trials, run.dimensions, run.config).known == len(trials)


def test_one_long_text_is_enough_for_the_authors_program_alone() -> None:
    lengths = [10] * 99 + [40]
    published, paper = make_config("published"), make_config("paper")
    assert tries_hard_attention(samples_of(lengths), published)
    assert not tries_hard_attention(samples_of(lengths), paper)
    assert not tries_hard_attention(samples_of(lengths, copies=FEWEST_CHANGED), paper), "copies are one text"
    assert voters_of(samples_of(lengths), published, is_hard=True).all()
    (note,) = run_of("published", 12).notes
    assert "preset=published counts the others as helped by it, as the authors' program does" in note


@given(short=st.integers(0, 5000), long=st.integers(0, 200), copies=st.integers(1, 50), share=st.floats(0, 0.9))
def test_it_is_tried_wherever_enough_can_change_or_the_paper_could_accept_it(
    short: int, long: int, copies: int, share: float
) -> None:
    rows = max(20, short)
    config = PassConfig(attention_top_k=5, majority_fraction=share)
    samples = samples_of([5] * rows + [6] * long, copies if rows < 100 else 1)
    assert tries_hard_attention(samples, config) == (long >= FEWEST_CHANGED or long > share * (rows + long))
    voters = voters_of(samples, config, is_hard=True)
    assert int(voters.sum()) == long
    assert (samples.longest[voters] > 5).all()


class Scripted(Evaluator):
    """Of given losses: hard attention helps some samples, and every other change harms all."""

    precision = "float32"

    def __init__(self, samples: Samples, gains: Tensor) -> None:
        self.samples = samples
        self._gains = gains

    def parts(self, plan: Plan) -> Iterator[Part]:
        changes = sum(layer.hard_attention is not None for layer in plan.layers)
        whole = all(len(layer.heads) == 4 and layer.neuron_count == 48 for layer in plan.layers)
        losses = torch.full((len(self.samples),), 1.0 if whole else 2.0) - changes * self._gains
        for places in torch.arange(len(losses)).split(7):
            yield Part(places, losses[places])

    def accept(self, plan: Plan) -> None:
        """Do nothing, since nothing is cached."""

    def see_first(self, samples: Tensor | None) -> None:
        """Do nothing: samples come in the order of the data."""


@pytest.mark.parametrize("is_early", [True, False])
@pytest.mark.parametrize(
    ("preset", "helped", "harmed", "accepted"),
    [("paper", 13, 12, True), ("paper", 12, 13, False), ("robust", 25, 0, True), ("published", 1, 24, True)],
)
def test_a_majority_is_one_of_those_that_can_change(
    preset: str, helped: int, harmed: int, accepted: bool, is_early: bool
) -> None:
    """Of 1,000 texts 25 are longer than K. Under ``published`` all others count as helped, and the mean decides."""
    samples = samples_of([30] * 975 + [31] * (helped + harmed))
    gains = torch.cat([torch.zeros(975), torch.full((helped,), 0.1), torch.full((harmed,), -0.001)])
    config = make_config(preset, {"early_decision": is_early})
    trials = list(search(Scripted(samples, gains), CHECKPOINT.dimensions, config, parameters_left=lambda _: 0))
    first = hard(trials)[0]
    assert (first.verdict is Verdict.ACCEPT) == accepted
    assert first.total == (1000 if preset == "published" else 25)
    if not is_early:
        assert first.helped == helped + (975 if preset == "published" else 0)


@pytest.mark.slow
@pytest.mark.parametrize("knobs", [{}, {"safeguard": 2, "majority_fraction": 0.3}, {"majority_fraction": 0.1}])
@pytest.mark.parametrize("top_k", [5, 9])
def test_resumed_and_early_and_plain_passes_decide_alike(top_k: int, knobs: dict[str, object]) -> None:
    run = run_of("paper", top_k, **knobs)
    trials = list(run.trials())
    whole = [(trial.element, trial.verdict) for trial in trials]
    assert 0 < hard(trials)[0].total < len(ROWS), "texts on both sides of K"
    for cut in (2, len(trials) // 2):
        resumed = list(run.trials(replay=trials[:cut]))
        assert [trial.model_copy(update={"seconds": 0}) for trial in resumed] == [
            trial.model_copy(update={"seconds": 0}) for trial in trials
        ]
    full = list(run_of("paper", top_k, early_decision=False, **knobs).trials())
    assert [(trial.element, trial.verdict) for trial in full] == whole
    assert {trial.samples for trial in hard(full)} == {hard(full)[0].total}
    plain = PlainEvaluator(CHECKPOINT.model, CHECKPOINT.architecture, CHECKPOINT.task, run.deciding.samples)
    slow = search(plain, run.dimensions, run.config, parameters_left=lambda _: 0)
    assert [(trial.element, trial.verdict) for trial in slow] == whole


def test_a_trace_of_an_earlier_version_that_always_tried_it_goes_on() -> None:
    earlier = list(run_of("published", 12).trials())
    layers = CHECKPOINT.dimensions.layers
    assert len(hard(earlier)) == layers
    run = run_of("paper", 12)
    resumed = list(run.trials(replay=earlier[: layers + 1]))
    assert resumed[: layers + 1] == earlier[: layers + 1]
    assert hard(list(run_of("paper", 12).trials())) == []

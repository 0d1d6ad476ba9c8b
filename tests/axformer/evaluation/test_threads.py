"""Each core measures batches of its own, and leaves PyTorch as it was."""

import torch

from axformer.config import PassConfig
from axformer.data.reading import rows_of
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.evaluation.threads import MOST_THREADS, ThreadedEvaluator, threads_for
from axformer.intake.dataset import prepare
from axformer.plan.plan import Plan
from tests.family_cases import Case, checkpoint_of
from tests.tiny_models import tiny_rows

BUDGET = 1_000_000


def test_threads_measure_what_one_does_and_give_the_cores_back() -> None:
    checkpoint, cores = checkpoint_of(Case("bert", "classification")), torch.get_num_threads()
    samples = prepare(rows_of(tiny_rows(30, labels=3)), checkpoint, PassConfig(batch_tokens=60)).samples
    plan = Plan.full(checkpoint.dimensions)
    given = checkpoint.model, checkpoint.architecture, checkpoint.task, samples, plan
    alone = PrefixEvaluator(*given, budget=BUDGET)
    with ThreadedEvaluator(*given, budget=BUDGET, threads=3, cores=cores) as together:
        assert torch.allclose(together.losses(plan), alone.losses(plan), rtol=1e-5, atol=1e-6)
        first = next(iter(together.parts(plan)))
        assert len(first.places) > len(samples.batches[0].rows), "a part has a batch of each"
    assert torch.get_num_threads() == cores


def test_a_gpu_is_one_and_cores_are_not_all_taken() -> None:
    assert threads_for(torch.device("cuda"), 16) == 1
    assert [threads_for(torch.device("cpu"), cores) for cores in (1, 2, 64)] == [1, 2, MOST_THREADS]

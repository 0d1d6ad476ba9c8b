"""A linear classifier needs few dimensions of a model that knows the answers, and keeps them."""

from pathlib import Path

import numpy as np

from axformer.analysis.advice import Given
from axformer.analysis.features import ranked, select
from axformer.analysis.inputs import AnalysisInputs
from axformer.analysis.making import study_of
from axformer.analysis.study import ReportBounds
from axformer.config import reading_config
from axformer.data.reading import rows_of
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.surroundings import Surroundings
from tests.tiny_models import answered_rows, answering_model, tiny_tokenizer


def test_a_good_model_needs_few_dimensions_and_keeps_its_answers(tmp_path: Path) -> None:
    model = answering_model(2)
    rows = answered_rows(model, 160, [0, 1])
    checkpoint, config = from_memory(model, tiny_tokenizer()), reading_config({})
    parts = [prepare(rows_of(part), checkpoint, config) for part in (rows[:80], rows[80:])]
    inputs = AnalysisInputs(checkpoint, parts[0], parts[1], None, config, Given("m", "d", "t"))
    study = study_of(inputs, ReportBounds(), 0, tmp_path, Surroundings())
    found = select(study)
    assert study.model == 1.0
    assert found.minimal.metric > 0.7
    assert found.minimal.dimensions == len(found.dimensions) < found.oracle.dimensions
    assert found.minimal.layers == found.selected.layers <= study.data.states.layers


def test_dimensions_are_ranked_by_the_class_that_needs_them_soonest() -> None:
    sizes = np.array([[8.0, 1.0, 1.0, 0.0], [0.0, 0.0, 3.0, 7.0]])
    assert ranked(sizes) == [0, 3, 2, 1]
    assert ranked(np.array([[1.0, 1.0, 1.0]])) == [0, 1, 2]

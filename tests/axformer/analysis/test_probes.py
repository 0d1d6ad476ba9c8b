"""Probes are scikit-learn's, on dimensions as they are."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from axformer.analysis.labels import LabelKind, Labels, answers_of, can_probe, figures_of_scores, labels_of
from axformer.analysis.probes import classifier, fit, regressor
from axformer.errors import AxFormerError
from tests.family_cases import Case, all_cases, checkpoint_of, data_of

ROWS, COLUMNS = 120, 6
DRAW = np.random.default_rng(0)
X = (3 * DRAW.normal(size=(ROWS, COLUMNS)) + DRAW.normal(size=COLUMNS)).astype(np.float32)
X[:, 4] = 7.0
TOLERANCE = 1e-3


@pytest.mark.filterwarnings("ignore:The max_iter was reached")
@pytest.mark.parametrize("classes", [2, 3])
def test_classes(classes: int) -> None:
    y = np.argmax(X[:, :classes] + DRAW.normal(size=(ROWS, classes)), axis=1)
    probe = fit(X.copy(), Labels(LabelKind.CLASS, y, classes), seed=1)
    theirs = make_pipeline(StandardScaler(), classifier(ROWS, 1)).fit(X, y)
    scores = probe.linear.scores(X)
    assert np.array_equal(scores.argmax(axis=1), theirs.predict(X))
    margin = scores[:, 1] - scores[:, 0] if classes == 2 else scores
    assert margin == pytest.approx(theirs.decision_function(X), abs=TOLERANCE)
    assert probe.sizes[-1] == pytest.approx(np.abs(theirs[-1].coef_[-1]), abs=TOLERANCE)


@pytest.mark.filterwarnings("ignore:The max_iter was reached")
def test_truths_and_flags() -> None:
    flags = np.stack([X[:, 0] > 1, X[:, 1] + X[:, 2] > 0, np.ones(ROWS)], axis=1).astype(np.float32)
    scores = fit(X.copy(), Labels(LabelKind.FLAGS, flags, 3), seed=0).linear.scores(X)
    one = fit(X.copy(), Labels(LabelKind.TRUTH, flags[:, 0].astype(int), 1), seed=0).linear.scores(X)
    theirs = make_pipeline(StandardScaler(), classifier(ROWS, 0)).fit(X, flags[:, 0])
    assert one[:, 0] == pytest.approx(theirs.decision_function(X), abs=TOLERANCE)
    assert scores[:, :1] == pytest.approx(one, abs=TOLERANCE)
    assert (scores[:, 2] > 0).all()


@pytest.mark.filterwarnings("ignore:Objective did not converge")
def test_numbers() -> None:
    y = (X[:, :2] @ DRAW.normal(size=(2, 2)) + 4 + 0.1 * DRAW.normal(size=(ROWS, 2))).astype(np.float32)
    scores = fit(X.copy(), Labels(LabelKind.NUMBERS, y, 2), seed=0).linear.scores(X)
    for place in range(2):
        theirs = make_pipeline(StandardScaler(), regressor()).fit(X, y[:, place])
        assert scores[:, place] == pytest.approx(theirs.predict(X), abs=TOLERANCE)


def test_a_class_that_no_row_has_is_never_the_answer() -> None:
    y = np.where(X[:, 0] > 0, 3, 1)
    scores = fit(X.copy(), Labels(LabelKind.CLASS, y, 5), seed=0).linear.scores(X)
    assert set(scores.argmax(axis=1)) <= {1, 3}
    assert (scores.argmax(axis=1) == y).mean() > 0.9


@pytest.mark.parametrize("case", [case for case in all_cases() if case.family == "bert"], ids=str)
def test_right_scores_have_the_best_metric_of_the_task(case: Case) -> None:
    checkpoint, data = checkpoint_of(case), data_of(case)
    if not can_probe(checkpoint.task):
        with pytest.raises(AxFormerError, match="there are no probes"):
            labels_of(checkpoint, data)
        return
    labels, encoded = labels_of(checkpoint, data), data.samples.encoded
    counts = [sum(tag >= 0 for tag in row) if encoded.per_token else 1 for row in encoded.labels]
    values = labels.values
    scores = np.eye(labels.outputs)[values] if labels.kind is LabelKind.CLASS else values.astype(float)
    scores = scores - 0.5 if labels.kind is LabelKind.FLAGS else scores
    figures = figures_of_scores(checkpoint.task, encoded, counts, scores)
    assert next(iter(figures.values())) == pytest.approx(1)
    assert len(answers_of(checkpoint.task, counts, scores)) == len(counts)

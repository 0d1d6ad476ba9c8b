"""The content of ``analysis.json``: where a model is redundant, measured without changing it."""

from typing import Annotated, Literal

from pydantic import Field

from axformer.wire import bounds
from axformer.wire.base import Schema
from axformer.wire.bounds import Anything, Text, Word
from axformer.wire.data_summary import DataSummary

ANALYSIS_FORMAT: Literal["axformer-analysis/1"] = "axformer-analysis/1"
ReportName = Literal["layers", "heads", "cka", "clusters", "drift", "features"]
"""The names of the reports, in their order; those of the fields of :class:`Reports`."""
Curve = Annotated[tuple[float, ...], Field(max_length=10_000)]
Matrix = Annotated[tuple[Curve, ...], Field(max_length=bounds.POINTS)]


class Advice(Schema):
    """What to do with a report."""

    sentence: Text
    """What the report found."""
    command: Text
    """The command that uses it; empty where the finding supports none."""


class Reported(Schema):
    """What every report has."""

    advice: Advice
    seconds: float
    """Time that the report alone took."""


class EarlyExit(Schema):
    """Texts that are answered by the lowest layer whose probe is sure enough, and else by the model itself."""

    may_differ: float
    """The share of answers that may differ from the model's own, shown by an exact test with 95 % confidence."""
    threshold: float
    """The probability of an answer at which a text leaves."""
    changed: int
    """Answers that differ on the rows that measure."""
    rows: int
    """Different inputs among them."""
    layers: float
    """Mean number of layers that are run."""
    right: float
    """Share of right answers."""


class Probed(Schema):
    """The metric of linear probes by layer."""

    metric: Word
    """Name of the task's first metric."""
    model: float
    """The metric of the model itself on the same rows."""
    guess: float
    """The metric of guessing: the share of the most frequent answer, or 0."""
    oracle: float
    """The metric of a probe on all layers together."""
    by_layer: Curve
    """The metric of a probe on each hidden state, that of the embeddings first."""
    redundant: Annotated[tuple[int, ...], Field(max_length=bounds.LAYERS + 1)]
    """Layers whose probe has at least 99 % of the oracle's metric and is reliably better than guessing; 0 is the embeddings, 1
    the lowest layer."""
    by_class: Annotated[dict[Word, Curve], Field(max_length=bounds.CLASSES)] | None
    """The share of each class's positions that each layer's probe tells right; null where answers are no classes."""
    early: Annotated[tuple[EarlyExit, ...], Field(max_length=bounds.LAYERS)] = ()
    """What early exits save, by the share of answers that may differ; empty where texts have no class each, where no threshold
    passes its test, and in analyses of earlier versions."""


class LayersReport(Reported):
    """Which layers add something."""

    probes: Probed | None
    """Null where there are no training rows, or where the task has no labels to probe for."""
    contribution: Curve
    """Mean cosine between input and output of each layer, the lowest first; 1 changes nothing."""
    contribution_rows: int
    """Rows of ``data`` that it was measured on."""


class CkaReport(Reported):
    """How much layers say the same."""

    matrix: Matrix
    """Linear CKA of every pair of hidden states, the embeddings first; debiased, but in analyses of version 0.2. A state that
    is the same at every position has 0 with all, itself included."""
    leading: Curve = ()
    """Of each state, the share of its variance along its first principal direction. Where it is nearly 1, CKA compares little
    else. Empty in analyses of earlier versions."""
    positions: int
    """Positions that it was computed from."""


class Cut(Schema):
    """The clusters at one threshold."""

    threshold: float
    """Largest average distance within a cluster; a distance is one minus the absolute correlation."""
    clusters: int
    """Number of clusters, and so of dimensions that are kept."""
    metric: float | None
    """The metric of a probe on one random dimension of each cluster; null without probes."""


class ClustersReport(Reported):
    """How many dimensions say something of their own."""

    dimensions: int
    """Dimensions of all hidden states together."""
    clustered: int
    """Dimensions that were clustered, drawn at random where all would not fit."""
    positions: int
    """Positions that correlations were computed from."""
    metric: Word | None
    """Name of the task's first metric; null without probes."""
    oracle: float | None
    """The metric of a probe on all clustered dimensions."""
    cuts: Annotated[tuple[Cut, ...], Field(max_length=bounds.POINTS)]
    windows: Annotated[dict[int, float], Field(max_length=bounds.LAYERS + 1)]
    """Share of the clusters at threshold 0.3 by the layers that they span: 1 is one layer, 2 two neighbours."""


class Kept(Schema):
    """The model without its least important heads."""

    removed: float
    """Share of all heads that is removed."""
    metric: float
    relative: float | None
    """The metric divided by that of the whole model; null where that is not positive."""


class HeadsReport(Reported):
    """Which heads matter."""

    importance: Matrix
    """Mean absolute gradient of the loss by a gate on each head, divided by its sum over the layer; a row for each layer."""
    rows: int
    """Rows that importance was measured on."""
    curve_rows: int
    """Rows that the curve was measured on."""
    metric: Word
    """Name of the task's first metric."""
    guess: float
    """The metric of guessing on the rows of the curve."""
    curve: Annotated[tuple[Kept, ...], Field(max_length=bounds.POINTS)]
    """The model without more and more of its heads, the least important first, and without training."""


class Recall(Schema):
    """How many important heads of the checkpoint another model's ranking keeps."""

    removed: float
    """Share of its heads that the other model has lost at this step."""
    relative: float | None
    """The metric that the other model then has, relative to its whole one."""
    recall: float
    """Share of the checkpoint's important heads that it still has."""


class DriftReport(Reported):
    """What training has changed between two models."""

    against: Word
    """Name of the other model."""
    rows: int
    """Rows that both models saw."""
    cosine: Curve
    """Mean cosine between both models' hidden states, the embeddings first, where states are read."""
    distance: Curve
    """Mean Euclidean distance between both models' hidden states over all tokens, the embeddings first."""
    attention: Matrix
    """Mean Jensen-Shannon divergence of both models' attention, in nats, by layer and head; at most ln 2."""
    recall: Annotated[tuple[Recall, ...], Field(max_length=bounds.POINTS)] | None
    """Null where the other model has another head, so that importance cannot be measured on the same rows; a note says so."""
    correlation: float | None
    """Pearson's correlation, over all heads, of the checkpoint's importance and the divergence; null where one is constant."""
    correlation_against: float | None
    """The same with the importance of the other model; null where that is not known."""


class Chosen(Schema):
    """A choice of dimensions, and what a probe reads from them."""

    layers: int
    """Layers that are run."""
    dimensions: int
    metric: float
    seconds: float
    """Time to fit the probe."""


class FeaturesReport(Reported):
    """How few dimensions of how few layers are enough for a linear classifier."""

    metric: Word
    """Name of the task's first metric."""
    model: float
    """The metric of the model itself on the same rows."""
    guess: float
    """The metric of guessing on them."""
    oracle: Chosen
    """All dimensions of all layers."""
    by_depth: Curve
    """The metric of a probe on the embeddings and the lowest layers together, by number of layers."""
    selected: Chosen
    """The lowest layers that are enough (LayerSelector)."""
    clustered: Chosen
    """Of those, one dimension of each cluster."""
    minimal: Chosen
    """Of those, the best dimensions that are enough (CCFS)."""
    by_count: Annotated[tuple[tuple[int, float], ...], Field(max_length=bounds.DIMENSIONS)]
    """Numbers of best dimensions that were tried, ascending, with the metric of each."""
    chosen: Annotated[tuple[Word, ...], Field(max_length=bounds.DIMENSIONS)]
    """Ids of the kept dimensions (``hidden.LAYER.COLUMN``), the best first."""


class Reports(Schema):
    """The reports that were made; null where one was not."""

    layers: LayersReport | None = None
    heads: HeadsReport | None = None
    cka: CkaReport | None = None
    clusters: ClustersReport | None = None
    drift: DriftReport | None = None
    features: FeaturesReport | None = None


class Analysis(Schema):
    """An analysis of one model."""

    format: Literal["axformer-analysis/1"] = ANALYSIS_FORMAT
    names: Annotated[dict[Word, Text], Field(max_length=bounds.SETS)]
    """Names for people of ``checkpoint``, ``data``, ``train`` and ``against``, as far as given."""
    model_type: Word
    task: Word
    layers: int
    heads: int
    """Heads of each layer."""
    hidden_size: int
    sha256: Word
    """Digest of the checkpoint's weights."""
    positions: Text
    """Where hidden states are read, in words."""
    data: Annotated[dict[Word, DataSummary], Field(max_length=bounds.SETS)]
    """The rows that were used, by ``data`` and ``train``."""
    seed: int
    """Of all that is drawn at random."""
    reports: Reports
    notes: Annotated[tuple[Text, ...], Field(max_length=bounds.NOTES)]
    """What was left out or bounded, and why."""
    seconds: float
    """Time of the whole analysis."""
    peak_bytes: int
    """Most main memory of the process."""
    environment: Anything
    """Versions of software and names of hardware."""


class AnalysisAsked(Schema):
    """What an analysis was asked for."""

    reports: list[ReportName | str] | None = None
    """The wanted reports; null for all that the inputs allow."""
    rows: int | None = None
    """Most rows of each data set; null for the default."""


class FindingRead(Advice):
    """The last line of one report: what it found, and the command that uses it."""

    report: str
    """Name of the report."""

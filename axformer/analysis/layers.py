"""The report ``layers``: how early a model knows the answers, and which layers change little.

A linear probe on each hidden state is compared with one on all of them together, the oracle; layers whose probe has 99 % of its
metric are *redundant* (Dalvi et al., 2020, section 6.1; Sajjad et al., 2023, figure 3). The contribution of a layer is the mean
cosine between its input and its output (Sajjad et al., section 3.4).
"""

import time

import numpy as np

from axformer.analysis.advice import Given, advise, can_drop
from axformer.analysis.early import early_exits
from axformer.analysis.labels import can_probe
from axformer.analysis.probing import Probing
from axformer.analysis.study import Study
from axformer.methods.layers.scores import contribution
from axformer.tasks.classification import Classification
from axformer.wire.analysis import Advice, EarlyExit, LayersReport, Probed
from axformer.wire.steps import Counter, StepName

THRESHOLD = 0.925
"""Mean cosine above which the paper drops a layer of BERT or XLNet (section 5)."""


def layers_report(study: Study, given: Given) -> LayersReport:
    """Measure the layers of a study's model."""
    began = time.monotonic()
    probes = None if study.train is None else probed(study)
    checkpoint = study.checkpoint
    part = study.part(study.bounds.gradient_rows)
    cosines = contribution(
        *(checkpoint.model, checkpoint.architecture, part.samples, study.surroundings.check_cancelled)
    )
    advice = _by_cosine(study, cosines, given) if probes is None else _by_probes(study, probes, given)
    return LayersReport(
        probes=probes,
        contribution=tuple(cosines),
        contribution_rows=len(part.rows),
        advice=advice,
        seconds=time.monotonic() - began,
    )


def probed(study: Study) -> Probed:
    """Probe every hidden state alone, and all together."""
    count = study.data.states.layers + 1
    counter, probing = Counter(StepName.PROBING, count + 1, study.surroundings.on_step), Probing(study)
    metrics, by_class, scores = [], [], []
    counter.begin()
    for layer in range(count):
        measured = probing.of_layers([layer])
        metrics.append(measured.metric)
        by_class.append(probing.by_class(measured.scores))
        scores.append(measured.scores)
        counter.advance()
    oracle = probing.of_layers(range(count)).metric
    counter.advance()
    classes = None
    if by_class[0] is not None:
        classes = {name: tuple(one[name] for one in by_class if one is not None) for name in by_class[0]}
    return Probed(
        metric=study.metric,
        model=study.model,
        guess=study.guessing.value,
        oracle=oracle,
        by_layer=tuple(metrics),
        redundant=tuple(layer for layer, metric in enumerate(metrics) if probing.is_near(metric, oracle)),
        by_class=classes,
        early=_early(study, scores[:-1]),
    )


def _early(study: Study, scores: list[np.ndarray]) -> tuple[EarlyExit, ...]:
    if study.checkpoint.task.name != Classification.name:
        return ()
    assert study.data.labels is not None, "the task has labels to probe for"
    each = study.data.data.samples.voters.numpy()  # the test holds for independent rows
    return early_exits([one[each] for one in scores], np.array(study.answers)[each], study.data.labels.values[each])


def _by_probes(study: Study, probes: Probed, given: Given) -> Advice:
    """Drop the layers above the lowest from which on every probe is as good as the oracle or the highest state's."""
    layers = study.data.states.layers
    if not study.guessing.is_beaten(probes.oracle):
        return advise(
            f"No probe is reliably better than guessing ({probes.guess:.4f}), so probes do not tell which layers the task "
            "needs; layer dropping measures it by training."
        )
    lowest = min(probes.redundant, default=layers)
    drop = next((count for count in range(min(layers - lowest, layers - 1), 0, -1) if _top(study, count)), 0)
    if not drop:
        return advise(
            "No layer below the highest tells the labels as well as all layers together, so none is plainly too many; "
            "compression takes parts of layers."
        )
    after = "the embeddings" if lowest == 0 else f"{lowest} of {layers} layers"
    return advise(
        f"A probe after {after} has at least 99 % of the metric of all layers together, so the top {drop} may go; what is "
        "left is trained again.",
        given.prune("layers", "--method", "layers", set_=[f"drop={drop}"]),
    )


def _top(study: Study, count: int) -> bool:
    layers = study.data.states.layers
    return can_drop(study.checkpoint, range(layers - count, layers))


def _by_cosine(study: Study, cosines: list[float], given: Given) -> Advice:
    chosen = [layer for layer, cosine in enumerate(cosines) if cosine > THRESHOLD]
    highest = max(range(len(cosines)), key=cosines.__getitem__)
    more = " Training rows would tell more, by probes." if can_probe(study.checkpoint.task) else ""
    if chosen and can_drop(study.checkpoint, chosen):
        return advise(
            f"{len(chosen)} of {len(cosines)} layers hand on nearly what they receive (mean cosine above {THRESHOLD:g})."
            f"{more}",
            given.prune("layers", "--method", "layers", set_=["strategy=contribution", f"threshold={THRESHOLD:g}"]),
        )
    if can_drop(study.checkpoint, [highest]):
        return advise(
            f"No layer hands on nearly what it receives; layer {highest} changes its input least (mean cosine "
            f"{cosines[highest]:.3f}).{more}"
        )
    return advise(
        f"The layers of {study.checkpoint.architecture.model_type} do not go one by one; compression takes parts of them."
    )

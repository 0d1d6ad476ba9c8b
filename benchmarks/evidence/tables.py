"""The tables of the document, each from the cells that it is about."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import mean, median, stdev, variance

from axformer.plan.elements import ElementKind, parse
from axformer.wire.metrics import first_metric
from axformer.wire.verdicts import Judgement
from benchmarks.evidence.grid import ARMS, PAPER, VARIED, Arm, questions
from benchmarks.evidence.reading import (
    CONFIRMING,
    LOSS,
    TEST,
    VALIDATION,
    Content,
    after,
    before,
    change,
    change_with_interval,
    judgement,
    kept,
    metrics_of,
    relative_change,
    removed_share,
    removed_share_of_encoder,
    speed,
)
from benchmarks.evidence.standing import marks_of

_DIGITS = 8
_JUDGED = ((Judgement.GAIN, "gain"), (Judgement.NO_RELIABLE_GAIN, "none"), (Judgement.LOSS, "loss"))
_TABLE_II = (
    (("BERT-base", "the paper's", "base"), "1.48", "4.86", "80.05", "76.53"),
    (("BERT-base", "the paper's", "pruned"), "0.86", "1.95", "82.02", "79.93"),
)
_PARTS = {
    ElementKind.LAYER: ("layer", "layer"),
    ElementKind.ATTENTION: ("attention", "attention"),
    ElementKind.FFN: ("FFN", "FFN"),
    ElementKind.HEAD: ("1 head", "{} heads"),
    ElementKind.NEURONS: ("1 group", "{} groups"),
}
_REMOVED = ("parameters removed", "of the encoder's")
HARD = "top K"
"""How a layer with hard attention is marked."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; nothing where it has no rows."""
    if not rows:
        return ""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def arms() -> str:
    """What each arm asks of a pass."""
    rows = [[f"`{name}`", f"`{arm.preset}`", ", ".join(_changed(arm)) or "none"] for name, arm in ARMS.items()]
    return table(("arm", "preset", "what is changed"), rows)


def _changed(arm: Arm) -> list[str]:
    rows = [] if arm.validation_rows is None else [f"{arm.validation_rows} validation rows"]
    return [*(f"`{knob}={value}`" for knob, value in arm.knobs.items()), *rows]


def measured(found: Iterable[Content]) -> str:
    """How many of the cells that each question asks for are there."""
    is_marked = {one["cell"]: bool(marks_of(one)) for one in found}
    rows = []
    for question, asked in questions().items():
        there = [is_marked[cell.name] for cell in asked if cell.name in is_marked]
        marked = f", and {sum(there)} that are marked" if any(there) else ""
        rows.append([question, f"{there.count(False)} of {len(asked)}{marked}"])
    return table(("question", "cells"), rows)


def by_set(found: Iterable[Content]) -> str:
    """Means over the seeds of each set, model and arm."""
    head = (
        *("set", "model", "arm", "seeds", "validation loss", "held-out loss", "metric", "held-out metric", "judged"),
        *(*_REMOVED, "operations", "latency"),
    )
    return table(head, [[*who, *_summary(same)] for who, same in _together(found)])


def _together(found: Iterable[Content]) -> list[tuple[list[str], list[Content]]]:
    """Cells that differ by their seed alone, with their set, model and arm, which bears their marks."""

    def place(one: Content) -> tuple[str, str, str, str]:
        return one["model"], one["data"], one["arm"], marks_of(one)

    return [
        ([data, model, f"{arm}{marks}"], list(same))
        for (model, data, arm, marks), same in groupby(sorted(found, key=place), key=place)
    ]


def _summary(same: Sequence[Content]) -> list[str]:
    judged = Counter(map(judgement, same))
    metrics = metrics_of(same[0])
    return [
        f"{len(same)}",
        _spread([change(one, VALIDATION, LOSS) for one in same]),
        _spread([change(one, TEST, LOSS) for one in same]),
        _named(metrics),
        "; ".join(_spread([change(one, TEST, metric) for one in same]) for metric in metrics),
        ", ".join(f"{judged[name]} {word}" for name, word in _JUDGED if judged[name]),
        *_removed(same),
        f"{mean(one['report']['estimated_speedup'] for one in same):.2f}x fewer",
        f"{median(map(speed, same)):.2f}x",
    ]


def _named(metrics: Iterable[str]) -> str:
    return "; ".join(metrics).replace("_", " ")


def optimism(found: Sequence[Content]) -> str:
    """What validation data promise beside what held-out data say, by arm."""
    rows = []
    for arm in ARMS:
        same = [one for one in found if one["arm"] == arm]
        if same:
            promised, held = promised_and_held(same)
            rows.append([f"`{arm}`", f"{len(same)}", f"{promised:+.1%}", f"{held:+.1%}", f"{held - promised:+.1%}"])
    return table(("arm", "cells", "validation loss", "held-out loss", "difference"), rows)


def promised_and_held(found: Sequence[Content]) -> tuple[float, float]:
    """The mean change of the loss on validation and on held-out rows, as shares of the loss before."""
    promised, held = (mean(relative_change(one, data) for one in found) for data in (VALIDATION, TEST))
    return promised, held


def seeds(found: Iterable[Content]) -> str:
    """How far the seeds of a set lie apart before and after the pass, in points; only where there are several."""
    rows = []
    for who, same in _together(found):
        if len(same) > 1:
            for metric in metrics_of(same[0]):
                told = [text for points in _points(same, metric) for text in _apart(points)]
                rows.append([*who, f"{len(same)}", _named([metric]), *told])
    head = (
        "set",
        "model",
        "arm",
        "seeds",
        "metric",
        *("base", "deviation", "variance", "pruned", "deviation", "variance"),
    )
    return table(head, rows)


def _points(same: Sequence[Content], metric: str) -> list[list[float]]:
    """The held-out metric of each seed, in points, before and after the pass."""
    return [[100 * of(one, TEST, metric) for one in same] for of in (before, after)]


def _apart(points: Sequence[float]) -> list[str]:
    return [f"{min(points):.2f} to {max(points):.2f}", f"{stdev(points):.2f}", f"{variance(points):.2f}"]


def seeds_over_sets(found: Iterable[Content]) -> str:
    """The four figures of the paper's Table II, over all sets with several seeds, before and after the pass."""
    groups = [same for _, same in _together(found) if len(same) > 1]
    rows = [[*who, "10", "10", *figures] for who, *figures in _TABLE_II]
    for model, arm in sorted({(same[0]["model"], same[0]["arm"]) for same in groups}, key=_by_model_and_arm):
        together = [same for same in groups if (same[0]["model"], same[0]["arm"]) == (model, arm)]
        count = " to ".join(map(str, sorted({len(same) for same in together})))
        both = zip(*(_points(same, metrics_of(same[0])[0]) for same in together), strict=True)
        for when, sets in zip(("base", "pruned"), both, strict=True):
            rows.append([model, f"`{arm}`", when, f"{len(together)}", count, *_over_sets(sets)])
    head = (
        "model",
        "arm",
        "",
        "sets",
        "seeds",
        *("mean variance", "largest variance", "mean of the best", "mean of the worst"),
    )
    return table(head, rows)


def _by_model_and_arm(who: tuple[str, str]) -> tuple[str, int]:
    return who[0], list(ARMS).index(who[1])


def _over_sets(sets: Sequence[Sequence[float]]) -> list[str]:
    variances = [variance(points) for points in sets]
    best, worst = (mean(map(end, sets)) for end in (max, min))
    return [f"{figure:.2f}" for figure in (mean(variances), max(variances), best, worst)]


def heuristics(varied: Sequence[Content], compared: Iterable[Content]) -> str:
    """Each changed heuristic beside the paper's rule on the very same checkpoints."""
    asked = {one["checkpoint"] for one in varied}
    beside = [one for one in compared if one["arm"] == PAPER and one["checkpoint"] in asked]
    order = [PAPER, *(arm for changed in VARIED.values() for arm in changed)]
    groups = sorted(_together([*beside, *varied]), key=lambda group: (group[0][0], order.index(group[1][0]["arm"])))
    return table(
        ("set", "arm", "seeds", "validation loss", "held-out loss", "metric", "held-out metric", *_COST),
        [[data, f"`{arm}`", *_summary(same)[:5], *_cost(same)] for (data, _, arm), same in groups],
    )


_COST = (*_REMOVED, "trials", "seconds")


def _cost(same: Sequence[Content]) -> list[str]:
    trials, seconds = (mean(one["report"][figure] for one in same) for figure in ("trials", "seconds"))
    return [*_removed(same), f"{trials:.0f}", f"{seconds:.0f}"]


def compression(found: Iterable[tuple[int, Content]]) -> str:
    """Cells with the epochs of their model's training, by model and epochs, then in the order of the arms."""

    def order(asked: tuple[int, Content]) -> tuple[str, int, int]:
        epochs, one = asked
        return one["model"], epochs, list(ARMS).index(one["arm"])

    head = (
        *("model", "epochs", "arm", "rows", "loss before", "change", *_REMOVED),
        *("held-out loss before", "change", "metric", "before", "change", "operations"),
    )
    return table(head, [_compressed(*one) for one in sorted(found, key=order)])


def _compressed(epochs: int, one: Content) -> list[str]:
    report, metric = one["report"], one["metric"]
    return [
        *(one["model"], f"{epochs}", f"`{one['arm']}`{marks_of(one)}", f"{report['data'][VALIDATION]['rows']:,}"),
        *(f"{before(one, VALIDATION, LOSS):.4f}", change_with_interval(one, VALIDATION, LOSS)),
        *_removed([one]),
        *(f"{before(one, TEST, LOSS):.4f}", change_with_interval(one, TEST, LOSS)),
        metric.replace("_", " "),
        *(f"{before(one, TEST, metric):.4f}", change_with_interval(one, TEST, metric)),
        f"{report['estimated_speedup']:.2f}x fewer",
    ]


def traded(found: Iterable[Content]) -> str:
    """What was bought for some points of the metric, and whether the held-out rows say that it cost more."""

    def order(one: Content) -> tuple[str, str, str, int]:
        return one["model"], one["data"], one["cell"].removesuffix(one["arm"]), list(ARMS).index(one["arm"])

    head = (
        *("checkpoint", "arm", "confirming rows", "metric", "before", "there", "held out before", "change", "held"),
        *(*_REMOVED, "operations", "latency", "held-out loss before", "change", "acceptances"),
    )
    return table(head, [_traded(one) for one in sorted(found, key=order)])


def _traded(one: Content) -> list[str]:
    report = one["report"]
    metric = first_metric(report["base"][TEST])
    held, accepted = kept(one)
    return [
        *(
            one["cell"].removesuffix(f"-{one['arm']}"),
            f"`{one['arm']}`{marks_of(one)}",
            f"{report['data'][CONFIRMING]['rows']:,}",
        ),
        *(
            metric.replace("_", " "),
            f"{before(one, CONFIRMING, metric):.4f}",
            f"{change(one, CONFIRMING, metric):+.4f}",
        ),
        *(f"{before(one, TEST, metric):.4f}", change_with_interval(one, TEST, metric), _promise(one, metric)),
        *(*_removed([one]), f"{report['estimated_speedup']:.2f}x fewer", f"{speed(one):.2f}x"),
        *(f"{before(one, TEST, LOSS):.4f}", change_with_interval(one, TEST, LOSS), f"{held} of {accepted}"),
    ]


def _promise(one: Content, metric: str) -> str:
    """Whether the metric fell by no more than the points that were asked for."""
    allowed = -one["report"]["config"]["within_points"] / 100
    _, high = one["report"]["comparison"][TEST]["differences"][metric]["interval"]
    return "broken" if high < allowed else "perhaps" if change(one, TEST, metric) < allowed else "kept"


def elements(found: Iterable[Content]) -> str:
    """What went from each layer, a row for each pass of the paper's rule whose cell holds it, and a table for each model."""
    told = [one for one in found if one["arm"] == PAPER and "removed" in one["report"]]
    tables = []
    for model in sorted({one["model"] for one in told}):
        passes = {
            f"{one['data']}{marks_of(one)}, seed {one['seed']}": _by_layer(one) for one in told if one["model"] == model
        }
        layers = range(1 + max((layer for layer_parts in passes.values() for layer in layer_parts), default=0))
        rows = [
            [name, *(", ".join(parts.get(layer, [])) for layer in layers)] for name, parts in sorted(passes.items())
        ]
        tables.append(table((model, *(f"layer {layer}" for layer in layers)), rows))
    return "\n\n".join(tables)


def _by_layer(one: Content) -> Mapping[int, list[str]]:
    """The parts that went, by layer, largest first; hard attention comes last."""
    report = one["report"]
    removed = [parse(id) for id in report["removed"]]
    parts: dict[int, list[str]] = {}
    for kind, (single, several) in _PARTS.items():
        for layer, count in sorted(Counter(element.layer for element in removed if element.kind is kind).items()):
            parts.setdefault(layer, []).append(single if count == 1 else several.format(count))
    for layer in report["hard_attention"]:
        parts.setdefault(layer, []).append(HARD)
    return parts


def singly(found: Iterable[Content]) -> str:
    """Every cell."""
    head = (
        *("cell", "checkpoint", "rows", "held-out loss before", "change", "metric", "before", "change", "McNemar p"),
        *(*_REMOVED, "kept", "seconds"),
    )
    return table(head, [_single(one) for one in found])


def _single(one: Content) -> list[str]:
    report, metrics = one["report"], metrics_of(one)
    test, data = report["comparison"][TEST]["mcnemar"], report["data"]
    held, accepted = kept(one)
    return [
        *(f"{one['cell']}{marks_of(one)}", f"`{one['checkpoint'][:_DIGITS]}`"),
        f"{data[VALIDATION]['rows']:,} and {data[TEST]['rows']:,}",
        *(f"{before(one, TEST, LOSS):.4f}", change_with_interval(one, TEST, LOSS)),
        _named(metrics),
        "; ".join(f"{before(one, TEST, metric):.4f}" for metric in metrics),
        "; ".join(change_with_interval(one, TEST, metric) for metric in metrics),
        "" if test is None else f"{test['p_value']:.3f} (+{test['gained']} −{test['lost']})",
        *(*_removed([one]), f"{held} of {accepted}", f"{report['seconds']:.0f}"),
    ]


def _removed(same: Sequence[Content]) -> list[str]:
    """The mean shares of all parameters and of the encoder's that are gone."""
    encoder = [share for share in map(removed_share_of_encoder, same) if share is not None]
    return [f"{mean(map(removed_share, same)):.1%}", f"{mean(encoder):.1%}" if len(encoder) == len(same) else "–"]


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):+.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else "")

"""Do the gains of a pass hold on rows that neither the fine-tuning nor the pass saw?

One seed of everything comes first. Behind the comparison of presets and safeguards stand the cells that ask why a pass removes
so little, and what the paper's heuristics are worth.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import mean, variance

from axformer.config import Order
from axformer.reporting.findings import judged
from axformer.wire.report import Comparison
from axformer.wire.verdicts import FindingVerdict
from benchmarks.checkpoints import checkpoint_named
from benchmarks.finetune import BASE, LARGE_BASE
from benchmarks.harness import Arm, Cell, Content, Grid
from benchmarks.prune import by_prune, usual_metric
from benchmarks.tables import NONE, POINT, grouped, spread, table, where, words

SEEDS = (0, 1, 2)
PAPER = "paper"
_PRESETS = {PAPER: Arm(preset="paper"), "published": Arm(preset="published"), "robust": Arm(preset="robust")}
_SAFEGUARDS = {
    "confirm": Arm({"confirm": 0.5}),
    "folds-confirm": Arm({"safeguard": 5, "confirm": 0.3}),
    "published-confirm": Arm({"confirm": 0.5}, preset="published"),
}
_COMPRESSION = {
    "rows-100": Arm(title="100 deciding rows", rows={"validation": 100}),
    "no-majority": Arm({"majority_fraction": 0.0}),
    "wide-margin": Arm({"refine_margin": 100.0}),
}
_RULE_OF_PAPER = {"helped_reference": "current", "ties_help": False}
"""The paper's rule in the preset ``published``, which alone has the knobs of the paper's tables."""
_HEURISTICS = {
    "random-order": Arm({"order": "random"}),
    "layers-first": Arm({**_RULE_OF_PAPER, "inspect_layers_first": True}, preset="published"),
    "no-hard-attention": Arm({"attention_top_k": None}),
    "adaptive": Arm({**_RULE_OF_PAPER, "coarse_margin": 0.99}, preset="published"),
}
_ORDERS = {
    order.value: Arm({"order": order.value})
    for order in (
        *(Order.TOP_BOTTOM_MIDDLE, Order.MIDDLE_TOP_BOTTOM, Order.MIDDLE_BOTTOM_TOP),
        *(Order.BOTTOM_TOP_MIDDLE, Order.BOTTOM_MIDDLE_TOP),
    )
}
_ADVISED_AGAINST = {"top-middle-bottom": Arm({"order": "top-middle-bottom"})}
"""What ``paper`` would be on CoLA if the task were not named."""
_VARYING = _HEURISTICS | _ORDERS | _ADVISED_AGAINST
ARMS: Mapping[str, Arm] = _PRESETS | _SAFEGUARDS | _COMPRESSION | _VARYING
_VARIED = {"rte": _HEURISTICS, "sst2": _ORDERS, "cola": _ADVISED_AGAINST}
"""On which set each heuristic is measured: pairs of sentences for Table V, as in the paper, and SST-2 for the orders."""
_COMPARED = [
    checkpoint_named(name).seeded(seed, model)
    for seed in SEEDS
    for model, names in (
        (BASE, ("rte", "cola", "sst2", "stsb", "sms", "ag-news", "ud-upos", "squad")),
        (LARGE_BASE, ("rte", "cola")),
    )
    for name in names
]
_COLA = checkpoint_named("cola")
_EPOCHS = [replace(_COLA, name=f"cola-{epochs}-epochs", epochs=epochs) for epochs in (3, 10, 1)]
"""How far a model is over-trained may be what there is to gain."""
GRID = Grid(
    "evidence",
    ARMS,
    [
        *(Cell(one, arm) for one in _COMPARED for arm in (*_PRESETS, *_SAFEGUARDS)),
        *(Cell(one, arm) for one in _EPOCHS for arm in (PAPER, *_COMPRESSION)),
        Cell(_COLA.seeded(0, LARGE_BASE), "no-majority"),
        *(Cell(one, arm) for one in _COMPARED if one.family == BASE for arm in _VARIED.get(one.data, ())),
    ],
    by_prune(usual_metric),
)
ENCODERS = {BASE: 10_646_784, LARGE_BASE: 85_054_464}
"""Parameters of the transformer layers, for cells that are older than this figure in reports; a test counts them."""
_JUDGED = (FindingVerdict.GAIN, FindingVerdict.NO_RELIABLE_GAIN, FindingVerdict.LOSS)
_TABLE_II = (
    ["BERT-base (the paper)", "before", "10", "10", "1.48", "4.86", "80.05", "76.53"],
    ["BERT-base (the paper)", "after", "10", "10", "0.86", "1.95", "82.02", "79.93"],
)


def _is_of_epochs(cell: Content) -> bool:
    return "-epochs-" in cell["cell"]


def compared(cells: Iterable[Content]) -> list[Content]:
    """The cells of presets and safeguards."""
    arms = {*_PRESETS, *_SAFEGUARDS}
    return [cell for cell in cells if cell["arm"] in arms and not _is_of_epochs(cell)]


def _change(cell: Content, data: str, figure: str) -> float:
    return float(cell["report"]["comparison"][data]["differences"][figure]["value"])


def _interval(cell: Content, data: str, figure: str, factor: float = 1.0, form: str = "+.4f") -> str:
    """A change and its 95 % paired bootstrap interval."""
    found = cell["report"]["comparison"][data]["differences"][figure]
    value, low, high = (factor * one for one in (found["value"], *found["interval"]))
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"


def judgement(cell: Content) -> FindingVerdict:
    """What held-out rows say of the pruned model, by the rule of today: a cell may be older."""
    report = cell["report"]
    comparison = Comparison.model_validate(report["comparison"]["test"])
    return judged(report["task"], "test", report["base"]["test"]["loss"], comparison)


def removed(cells: Sequence[Content]) -> str:
    """The mean share of the encoder's parameters that is gone; a dash for a model whose encoder is not known."""
    shares = []
    for cell in cells:
        base, pruned = cell["report"]["base"], cell["report"]["pruned"]
        whole = base.get("encoder_parameters") or ENCODERS.get(cell["model"])
        if whole is None:
            return NONE
        shares.append((base["parameters"] - pruned["parameters"]) / whole)
    return f"{mean(shares):.1%}"


def promised_and_held(cells: Sequence[Content]) -> tuple[float, float]:
    """The mean change of the loss on deciding and on held-out rows, as shares of the loss before."""

    def relative(cell: Content, data: str) -> float:
        return _change(cell, data, "loss") / float(cell["report"]["base"][data]["loss"])

    return mean(relative(cell, "validation") for cell in cells), mean(relative(cell, "test") for cell in cells)


def summary(cells: Sequence[Content]) -> str:
    """What came of the passes with each preset: a list."""
    told = []
    for arm in _PRESETS:
        same = where(compared(cells), arm=arm)
        promised, held = promised_and_held(same)
        counts = Counter(map(judgement, same))
        told.append(
            f"- **`{arm}`**, {len(same)} passes: the loss changed by {promised:+.1%} on the deciding rows and by {held:+.1%} "
            f"on held-out rows. {counts[FindingVerdict.GAIN]} models got reliably better, {counts[FindingVerdict.LOSS]} worse. "
            f"{removed(same)} of the encoder went."
        )
    return "\n".join(told)


def by_set(cells: Sequence[Content]) -> str:
    """The presets, set by set: the change of the metric in points over the seeds, what was removed, and passes worse."""
    rows = []
    presets = _sorted([cell for cell in compared(cells) if cell["arm"] in _PRESETS], "model", "data")
    for (model, data), of_set in grouped(presets, "model", "data").items():
        told = []
        for arm in _PRESETS:
            same = where(of_set, arm=arm)
            losses = sum(judgement(cell) is FindingVerdict.LOSS for cell in same)
            worse = f" ({losses} worse)" if losses else ""
            mark = "*" if any("otherwise" in cell for cell in same) else ""
            changes = [POINT * _change(cell, "test", cell["metric"]) for cell in same]
            told += [f"{spread(changes)}{mark}{worse}", removed(same)]
        seeds = len({cell["seed"] for cell in of_set})
        rows.append([data, model, words(of_set[0]["metric"]), f"{seeds}", *told])
    columns = [column for arm in _PRESETS for column in (f"`{arm}`", "removed")]
    return table(("set", "model", "metric", "seeds", *columns), rows)


def _sorted(cells: Iterable[Content], *names: str) -> list[Content]:
    return sorted(cells, key=lambda cell: tuple(cell[name] for name in names))


def optimism(cells: Sequence[Content]) -> str:
    """What deciding rows promise beside what held-out rows say, and how passes are judged, by arm."""
    rows = []
    for arm, same in _by_arm(compared(cells)):
        promised, held = promised_and_held(same)
        judgements = Counter(map(judgement, same))
        counts = [f"{judgements[name]}" for name in _JUDGED]
        rows.append([f"`{arm}`", f"{len(same)}", f"{promised:+.1%}", f"{held:+.1%}", *counts, removed(same)])
    return table(("arm", "passes", "deciding loss", "held-out loss", "gain", "none", "loss", "removed"), rows)


def _by_arm(cells: Sequence[Content]) -> list[tuple[str, list[Content]]]:
    return [(arm, same) for arm in ARMS if (same := where(cells, arm=arm))]


def seeds(cells: Sequence[Content]) -> str:
    """The figures of the paper's Table II, over MiniLM's sets with several seeds, before and after the pass."""
    rows = list(_TABLE_II)
    for arm, same in _by_arm(where(compared(cells), model=BASE)):
        sets = [group for group in grouped(same, "data").values() if len(group) > 1]
        for when, side in (("before", "base"), ("after", "pruned")) if arm in (PAPER, "robust") else ():
            figures = [[POINT * cell["report"][side]["test"][cell["metric"]] for cell in group] for group in sets]
            variances = [variance(values) for values in figures]
            counts = [f"{len(sets)}", " to ".join(map(str, sorted({len(group) for group in sets})))]
            told = (mean(variances), max(variances), mean(map(max, figures)), mean(map(min, figures)))
            rows.append([f"MiniLM, `{arm}`", when, *counts, *(f"{figure:.2f}" for figure in told)])
    head = ("model", "", "sets", "seeds", "mean variance", "largest", "mean of the best seeds", "of the worst")
    return table(head, rows)


def heuristics(cells: Sequence[Content]) -> str:
    """Each changed heuristic beside the paper's rule on the very same checkpoints."""
    order = [PAPER, *_VARYING]
    varied = [cell for cell in cells if cell["arm"] in order[1:]]
    asked = {cell["checkpoint"] for cell in varied}
    beside = [cell for cell in compared(cells) if cell["arm"] == PAPER and cell["checkpoint"] in asked]
    together = sorted([*beside, *varied], key=lambda cell: (cell["data"], order.index(cell["arm"])))
    rows: dict[tuple[str, ...], list[str]] = {}
    for (data, arm), same in grouped(together, "data", "arm").items():
        losses = [spread([_change(cell, part, "loss") for cell in same], "+.4f") for part in ("validation", "test")]
        change = spread([POINT * _change(cell, "test", same[0]["metric"]) for cell in same])
        rows.setdefault((data, f"{len(same)}", *losses, change, removed(same)), []).append(f"`{arm}`")
    head = ("set", "arm", "seeds", "deciding loss", "held-out loss", "points", "removed")
    return table(head, [[data, ", ".join(arms), *figures] for (data, *figures), arms in rows.items()])


def compression(cells: Sequence[Content]) -> str:
    """Why so little is removed: CoLA, by the epochs of the training and by what is asked."""
    asked = [cell for cell in cells if _is_of_epochs(cell) and cell["arm"] in (PAPER, "rows-100", "no-majority")]
    asked += where(cells, cell=f"cola-{LARGE_BASE}-s0-no-majority")
    epochs = {cell.name: cell.checkpoint.epochs for cell in GRID.cells}
    asked.sort(key=lambda cell: (cell["model"], epochs[cell["cell"]], list(ARMS).index(cell["arm"])))
    rows = [
        [
            *(cell["model"], f"{epochs[cell['cell']]}", f"`{cell['arm']}`", removed([cell])),
            _interval(cell, "test", "loss"),
            _interval(cell, "test", cell["metric"], POINT, "+.2f"),
        ]
        for cell in asked
    ]
    return table(("model", "epochs", "arm", "removed", "held-out loss", "Matthews, points"), rows)

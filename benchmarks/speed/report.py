"""``RESULTS.md``: what was measured, on what, and which targets are met."""

from collections.abc import Iterable, Sequence

from benchmarks.speed import figures
from benchmarks.speed.figures import Spread
from benchmarks.speed.machine import ARITHMETICS
from benchmarks.speed.padding import ROWS
from benchmarks.speed.record import Agreement, Cut, Result, SetResult
from benchmarks.speed.steps import BASELINES, PAD_TO, STEPS, Step
from benchmarks.speed.targets import Outcome, outcomes

_NONE = "–"
_HARDWARE = ("device", "cores", "threads", "platform", "python", "torch", "transformers", "load_before", "commit")
_PROCEDURE = """\
How it was measured. Preset `published`; the packaged MiniLM, fine-tuned on each task by `benchmarks.train_checkpoints`. Every
measurement is a process of its own that loads model and data, makes its batches, and only then starts the clock. Steps take
turns: a round runs each once, and a ratio is of two measurements of one round. A figure is the median over the rounds, in
brackets are least and most; one without brackets was measured once."""
_SINGLE_TRIALS = """\
Steps of whole forward passes do the same work for every trial, because they mask what is removed. So {steps} are not run to the
end: after a warm-up some trials of the real pass, from its beginning, middle and end, are timed alone, and their median is
multiplied by the number of trials (`--whole` runs them to the end instead). Their verdicts are not known then, so their mean
losses are compared with those of the reference."""
_UNITS = f"""\
`padded-128` and `dynamic` take {ROWS} rows a batch in the order of the file. `TFLOP` are the operations of all matrix
multiplications and attentions of the pass, counted by `torch.utils.flop_counter` in a run on one core without a clock; a
multiplication and an addition are two. The rate is measured in the same process right after the pass: the multiplications
of one layer's projections with packed weights, the fastest that PyTorch has on a CPU, with {ROWS * PAD_TO:,} rows, as many as
a padded batch has tokens. *At most* is the ratio that the machine would allow: for `early`, if its operations ran at that
rate and nothing beside them took any time; for `guarded`, if every trial were decided in bfloat16, so that the same
operations ran at its rate, and all else took as long as in `early`. Memory is the most that the process had held when it
ended, in brackets what it had held before the pass."""


def write_report(results: Sequence[Result], cuts: Sequence[Cut]) -> str:
    """The report as Markdown."""
    sets = [one.set for one in results]
    parts = ["# How fast a pass is", "Written by `make bench`, not by hand.", _machines(results)]
    parts += ["![Speed-up by step and set](results/speed.svg)", _steps(sets), *_method(sets), *map(_set, sets)]
    return "\n\n".join([*parts, _verdicts_on_cuts(cuts)]) + "\n"


def _machines(results: Sequence[Result]) -> str:
    """What each set was measured on."""
    rows = [(name.replace("_", " "), *(str(one.environment[name]) for one in results)) for name in _HARDWARE]
    for arithmetic in ARITHMETICS:
        rates = [Spread.of(rate / 1e9 for rate in figures.rates(one.set, arithmetic)) for one in results]
        rows.append((f"multiplications in {arithmetic}, GFLOP/s", *(_figure(rate, ",.0f") for rate in rates)))
    rows.append(("minutes", *(f"{one.minutes:.0f}" for one in results)))
    rows.append(("command", *(f"`{one.command}`" for one in results)))
    return table(("", *(one.set.title for one in results)), rows)


def _steps(sets: Sequence[SetResult]) -> str:
    rows = [(step.name, step.adds) for step in _measured(sets)]
    return "Each step does what the one before does, and more:\n\n" + table(("step", "what it adds"), rows)


def _method(sets: Sequence[SetResult]) -> list[str]:
    single = {run.step for one in sets for runs in one.rounds for run in runs if run.evaluations}
    names = ", ".join(f"`{step.name}`" for step in STEPS if step.name in single)
    return [_PROCEDURE, *([_SINGLE_TRIALS.format(steps=names)] if single else []), _UNITS]


def _measured(sets: Sequence[SetResult]) -> list[Step]:
    names = {run.step for one in sets for runs in one.rounds for run in runs}
    return [step for step in STEPS if step.name in names]


def _set(result: SetResult) -> str:
    title = f"## {result.title}: {result.rows:,} rows, {result.tokens:,} tokens, {len(result.trace)} trials"
    columns = ("step", "pass, s", *(f"× {name}" for name in BASELINES), "TFLOP", "of the rate", "peak, MB", "verdicts")
    rows = [_row(result, step) for step in _measured([result])]
    return "\n\n".join([title, table(columns, rows), _targets(result)])


def _row(result: SetResult, step: Step) -> tuple[str, ...]:
    overhead = figures.overhead(result, step.name, step.arithmetic)
    flops = result.flops.get(step.name)
    return (
        step.name,
        _figure(figures.seconds(result, step.name), ",.1f"),
        *(_figure(figures.ratio(result, step.name, name), ".3g") for name in BASELINES),
        _NONE if flops is None else f"{flops / 1e12:,.2f}",
        _NONE if overhead is None else f"{1 / overhead.median:.0%}{_of(step)}",
        _memory(result, step),
        _verdicts(result, step.name),
    )


def _of(step: Step) -> str:
    return "" if step.arithmetic == "float32" else f" of {step.arithmetic}"


def _memory(result: SetResult, step: Step) -> str:
    held = figures.peak_bytes(result, step.name)
    before = max(run.loaded_bytes for run in figures.runs_of(result, step.name).values())
    on_device = figures.device_peak_bytes(result, step.name)
    told = f"{held / 1e6:,.0f} ({before / 1e6:,.0f})"
    return told if on_device is None else f"{told}, device {on_device / 1e6:,.0f}"


def _verdicts(result: SetResult, step: str) -> str:
    return next((_agreed(one) for one in result.agreements if one.step == step), "reference")


def _agreed(one: Agreement) -> str:
    verdicts = f"{one.trials} losses" if one.same is None else f"{one.same} of {one.trials}"
    if one.loss_difference is None:
        return f"{verdicts}, no loss to compare"
    apart = f"within {one.loss_difference:.0e}" if one.loss_difference else "equal"
    return f"{verdicts} {apart}" if one.same is None else f"{verdicts}, losses {apart}"


def _targets(result: SetResult) -> str:
    if not result.is_whole:
        return "Targets are for all rows of the set; these are fewer."
    return table(("target", "wanted", "measured", "at most", "met"), [_target(one) for one in outcomes(result)])


def _target(outcome: Outcome) -> tuple[str, ...]:
    at_most = _NONE if outcome.ceiling is None else f"{_figure(outcome.ceiling, '.1f')}×"
    if outcome.measured is None:
        return outcome.what, outcome.wanted, "not measured", at_most, "no"
    return (
        outcome.what,
        outcome.wanted,
        f"{_figure(outcome.measured, '.2f')}×",
        at_most,
        "yes" if outcome.is_met else "no",
    )


def _verdicts_on_cuts(cuts: Sequence[Cut]) -> str:
    title = "## Verdicts, one by one"
    if not cuts:
        return f"{title}\n\nThey were not compared with those of a pass of whole forwards."
    rows = [
        (one.name, f"{one.rows:,}", agreement.step, _agreed(agreement), one.reference, one.commit)
        for one in cuts
        for agreement in one.agreements
    ]
    told = "\n".join(f"    {command}" for command in dict.fromkeys(one.command for one in cuts))
    return "\n\n".join(
        [
            title,
            "On a cut of each set a pass of whole forward passes is run to its end. Every element and verdict is compared:",
            table(("set", "rows", "step", "verdicts", "reference", "commit"), rows),
            told,
        ]
    )


def _figure(spread: Spread | None, form: str) -> str:
    if spread is None:
        return _NONE
    if spread.rounds == 1:
        return f"{spread.median:{form}}"
    return f"{spread.median:{form}} [{spread.least:{form}}, {spread.most:{form}}]"


def table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, ("---",) * len(columns), *rows))

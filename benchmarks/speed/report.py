"""``RESULTS.md``: what was measured, on what, and which targets are met."""

from collections.abc import Iterable, Sequence

from benchmarks.speed import figures
from benchmarks.speed.figures import Spread
from benchmarks.speed.machine import ARITHMETICS
from benchmarks.speed.padding import ROWS
from benchmarks.speed.record import Agreement, Result, SetResult
from benchmarks.speed.steps import BASELINES, EARLY, PAD_TO, STEPS, Step
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
a padded batch has tokens. Memory is the most that the process had held when it ended, in brackets what it had held before the
pass."""
_LIMITS = """\
*By arithmetic* is what the machine would allow, if its operations ran at that rate and nothing beside them took any time. *By
kernels* is what PyTorch would allow: if nothing but the kernels that the pass calls took any time,
neither Python nor cores that wait for each other (timed on one core, on the cut; see its last table)."""
_CUTS = """\
## Each technique in turn

On a cut of each set all steps run, and the verdict of every trial is compared with that of a pass of whole forwards, run to
its end by `{reference}`. Measured once. Steps between `dynamic` and `early` measure every trial to the end, all cores on one
batch."""


def write_report(results: Sequence[Result], cuts: Sequence[Result]) -> str:
    """The report as Markdown.

    Args:
        results: of whole sets, or of as many rows as were asked for.
        cuts: of their cuts.
    """
    sets, cut_of = [one.set for one in results], {one.set.name: one.set for one in cuts}
    parts = ["# How fast a pass is", "Written by `make bench`, not by hand.", _machines(results)]
    everything = [*sets, *cut_of.values()]
    parts += ["![Speed-up by step and set](results/speed.svg)", _steps(everything), *_method(everything)]
    parts += [_set(one, cut_of.get(one.name)) for one in sets]
    return "\n\n".join([*parts, *_techniques(cuts)]) + "\n"


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
    return [_PROCEDURE, *([_SINGLE_TRIALS.format(steps=names)] if single else []), _UNITS, _LIMITS]


def _measured(sets: Sequence[SetResult]) -> list[Step]:
    names = {run.step for one in sets for runs in one.rounds for run in runs}
    return [step for step in STEPS if step.name in names]


def _set(result: SetResult, cut: SetResult | None) -> str:
    return "\n\n".join([f"## {_title(result)}", _figures(result), _targets(result, cut)])


def _title(result: SetResult) -> str:
    return f"{result.title}: {result.rows:,} rows, {result.tokens:,} tokens, {len(result.trace)} trials"


def _figures(result: SetResult) -> str:
    columns = ("step", "pass, s", *(f"× {name}" for name in BASELINES), "TFLOP", "of the rate", "peak, MB", "verdicts")
    return table(columns, (_row(result, step) for step in _measured([result])))


def _techniques(cuts: Sequence[Result]) -> list[str]:
    references = dict.fromkeys(agreement.reference for one in cuts for agreement in one.set.agreements)
    if not references:
        return []
    about = [_CUTS.format(reference="`, `".join(references)), _machines(cuts)]
    return [*about, *("\n\n".join([f"### {_title(one.set)}", _figures(one.set), *_kernels(one.set)]) for one in cuts)]


def _kernels(result: SetResult) -> list[str]:
    """What the kernels of whole passes take by themselves, on one core."""
    if not result.alone:
        return []
    totals = {step: sum(run.kinds.values()) for step, run in result.alone.items()}
    least = (
        f"{figures.least_overhead(run, result.flops[EARLY]):.2f} times (`{step}`, {run.rates['float32'] / 1e9:,.0f} GFLOP/s)"
        for step, run in result.alone.items()
    )
    told = f"Kernels on one core, and what they take over the operations of `{EARLY}` at its float32 rate: {', '.join(least)}."
    rows = [
        (kind, *(_share(run.kinds[kind], totals[step]) for step, run in result.alone.items()))
        for kind in next(iter(result.alone.values())).kinds
    ]
    together = ("together", *(f"{total:,.2f} s" for total in totals.values()))
    return [told, table(("kernels", *result.alone), [*rows, together])]


def _share(seconds: float, total: float) -> str:
    return f"{seconds:,.2f} s, {seconds / total:.0%}"


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


def _targets(result: SetResult, cut: SetResult | None) -> str:
    if not result.is_whole:
        return "Targets are for all rows of the set; these are fewer."
    rows = [_target(one) for one in outcomes(result, cut)]
    return table(("target", "wanted", "measured", "by arithmetic", "by kernels", "met"), rows)


def _target(outcome: Outcome) -> tuple[str, ...]:
    measured = "not measured" if outcome.measured is None else f"{_figure(outcome.measured, '.3g')}×"
    limits = (
        _NONE if limit is None else f"{_figure(limit, '.3g')}×" for limit in (outcome.by_arithmetic, outcome.by_kernels)
    )
    return outcome.what, outcome.wanted, measured, *limits, "yes" if outcome.is_met else "no"


def _figure(spread: Spread | None, form: str) -> str:
    if spread is None:
        return _NONE
    if spread.rounds == 1:
        return f"{spread.median:{form}}"
    return f"{spread.median:{form}} [{spread.least:{form}}, {spread.most:{form}}]"


def table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, ("---",) * len(columns), *rows))

"""Display of a pass: live on a terminal, one line per trial if the output is piped."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from axformer.config import RunConfig
from axformer.data.columns import OWN_ANSWERS
from axformer.methods.progress import Progress, meter_of
from axformer.plan.elements import Dimensions, label_of
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.reporting.card_tables import BEFORE_TRAINING, SETS, before_training, share, sizes_of, without_removal
from axformer.surroundings import Surroundings
from axformer.wire.data_summary import ENOUGH_TOKENS, Refitted
from axformer.wire.metrics import in_words
from axformer.wire.steps import Step, StepName

RECENT = 6
_VERDICTS = {
    "gain": "bold green",
    "no_reliable_gain": "bold yellow",
    "within_limit": "bold green",
    "at_a_cost": "bold yellow",
    "loss": "bold red",
}
_COLOURS = {Verdict.BASE: "dim", Verdict.ACCEPT: "bold green", Verdict.REFINE: "yellow", Verdict.REJECT: "dim"}


Measure = Callable[[Sequence[Trial], bool], Progress]
"""Computes the progress of a pass from its trials and whether it has ended."""


def measured_by(dimensions: Dimensions, config: RunConfig) -> Measure:
    """The progress of a pass over a local model, computed incrementally for a growing trace."""
    meter, seen = meter_of(dimensions, config), 0

    def measure(trials: Sequence[Trial], ended: bool) -> Progress:
        nonlocal seen
        meter.add(trials[seen:])
        seen = len(trials)
        return meter.progress(ended=ended)

    return measure


@contextmanager
def display_for(console: Console, measure: Measure) -> Iterator["_Lines | _Screen"]:
    """The display that suits the console."""
    if not console.is_terminal:
        yield _Lines(console, measure)
        return
    with Live(console=console, refresh_per_second=8) as live:
        yield _Screen(live, measure)


QUIET_SECONDS = 60.0
"""Longest time without a plain line, so that a log shows that a long step goes on."""


class _Lines:
    """One plain line per trial, step between trials, and epoch of a training; of long steps one now and then."""

    def __init__(self, console: Console, measure: Measure) -> None:
        self._console = console
        self._measure = measure
        self._trials: list[Trial] = []
        self._told: tuple[str, str | None] | None = None
        self._told_at = 0.0

    def tell(self, step: Step) -> None:
        """Show what is done until the next trial comes."""
        part, now = (step.name, step.detail if step.name == StepName.TRAINING else None), time.monotonic()
        if part != self._told or now - self._told_at > QUIET_SECONDS:
            self._told, self._told_at = part, now
            self._console.print(_status_of(step), soft_wrap=True)

    def show(self, trial: Trial) -> None:
        """Show one more trial."""
        self._told = None
        self._trials.append(trial)
        progress = self._measure(self._trials, False)
        helped = "" if trial.helped is None else f" helped={trial.helped}/{trial.samples}"
        draws = "" if trial.frequency is None else f" draws={trial.frequency:.0%}"
        self._console.print(
            f"trial {trial.seq} {label_of(trial.element, 'base')} {trial.verdict.value} "
            f"loss{'>=' if trial.loss_is_bound else '='}{trial.loss:.6f} min={trial.min_loss:.6f}{helped}{draws} "
            f"{trial.seconds:.1f}s, {progress.done} of {progress.known} done",
            soft_wrap=True,
        )

    def end(self) -> None:
        """Nothing to do after the last line."""


class _Screen:
    """A progress bar, the changing figures, and the last trials."""

    def __init__(self, live: Live, measure: Measure) -> None:
        self._live = live
        self._measure = measure
        self._trials: list[Trial] = []
        self._bar = Bars(TextColumn("[bold]Trials"), BarColumn(bar_width=None), MofNCompleteColumn())
        self._task = self._bar.add_task("trials", total=None)
        self._step: Step | None = None

    def tell(self, step: Step) -> None:
        self._step = step
        self._update(ended=False)

    def show(self, trial: Trial) -> None:
        self._step = None
        self._trials.append(trial)
        self._update(ended=False)

    def end(self) -> None:
        self._update(ended=True)

    def _update(self, *, ended: bool) -> None:
        if not self._trials:
            return
        progress = self._measure(self._trials, ended)
        self._bar.update(self._task, completed=progress.done, total=progress.known)
        now = [] if self._step is None else [Text(_status_of(self._step), style="dim")]
        self._live.update(Group(self._bar, *now, self._figures(progress.seconds_left), self._recent()))

    def _figures(self, seconds_left: float | None) -> Text:
        base = self._trials[0].loss
        accepted = [trial for trial in self._trials if trial.verdict is Verdict.ACCEPT]
        loss = accepted[-1].loss if accepted else base
        removed = [trial for trial in accepted if trial.phase is not Phase.HARD_ATTENTION]
        hard = len(accepted) - len(removed)
        text = Text.assemble("Loss ", (f"{loss:.4f}", "bold"))
        text.append(f" (base {base:.4f}, {share(base, loss)})")
        text.append(f"  ·  removed {count(len(removed), 'element')}, ")
        text.append(f"{sum(trial.parameters for trial in removed):,} parameters")
        if hard:
            text.append(f"  ·  hard attention in {count(hard, 'layer')}")
        if seconds_left is not None:
            text.append(f"  ·  about {duration(seconds_left)} left", style="dim")
        return text

    def _recent(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for trial in self._trials[-RECENT:]:
            helped = "" if trial.helped is None else f"{trial.helped}/{trial.samples} helped"
            style = _COLOURS[trial.verdict]
            loss = f"{'≥' if trial.loss_is_bound else ''}{trial.loss:.4f}"
            table.add_row(
                f"trial {trial.seq}", label_of(trial.element, "base"), loss, helped, trial.verdict.value, style=style
            )
        return table


def closing_table(report: dict[str, Any]) -> Table:
    """Figures before and after, and a summary of the pass, from the content of a ``report.json``."""
    table = before_and_after(report)
    removed, hard = count(len(report["removed"]), "element"), count(len(report["hard_attention"]), "layer")
    lines = [] if table.caption is None else [str(table.caption)]
    lines += [
        f"{removed} removed, hard attention in {hard}",
        f"{report['trials']} trials in {duration(report['seconds'])}",
    ]
    table.caption = "\n".join(lines)
    return table


def finding_line(finding: Mapping[str, Any]) -> Text:
    """The finding: whether the model is better, judged on data that did not decide."""
    style = _VERDICTS.get(finding["verdict"], "")
    notes = " ".join(part for part in (finding["advice"], finding["answers"]) if part)
    return Text.assemble((finding["sentence"], style), f" {notes}" if notes else "")


def fit_line(refit: Mapping[str, Any]) -> str:
    """On how much data weights were fitted, and what did not suffice."""
    figures = Refitted.model_validate(refit)
    fewest, biases = figures.tokens_per_unknown, figures.bias_only
    told = f"Weights of {figures.blocks} blocks were fitted on {figures.tokens:,} tokens"
    if fewest is not None:
        told += f", at least {fewest:.1f} for each unknown"
    if biases:
        told += f"; of {biases} only the bias, since more did not hold on tokens that were not fitted"
    if figures.has_few_tokens:
        told += (
            f". Fewer than {ENOUGH_TOKENS} for each unknown are few: give more rows, without labels, with --calibrate"
        )
    return f"{told}."


def before_and_after(report: Mapping[str, Any]) -> Table:
    """The figures of a report side by side; figures that one side lacks are left out."""
    base, pruned, cut = report["base"], report["pruned"], before_training(report)
    table = Table(title="Before and after", title_justify="left", caption_justify="left")
    for name in ("", "before", *([BEFORE_TRAINING] if cut else []), "after", "change"):
        table.add_column(name, justify="left" if not name else "right")
    is_own = ((report.get("data") or {}).get("validation") or {}).get("labels_as") == OWN_ANSWERS
    for data, name in SETS.items():
        if is_own and data == "validation":
            continue  # the unlabelled rows say the same, and better
        for key, before in (base.get(data) or {}).items():
            after, what = pruned[data][key], f"{name} {in_words(key)}"
            middle = [cut.get(what, "")] if cut else []
            table.add_row(what, f"{before:.4f}", *middle, f"{after:.4f}", f"{after - before:+.4f}")
    table.add_section()
    for what, first, *rest in sizes_of(report):
        table.add_row(what, first, *([""] if cut else []), *rest)
    before, between, after = base.get("latency_ms"), report.get("one_position_ms"), pruned.get("latency_ms")
    if before is not None and between is not None and after is not None:
        table.caption = without_removal(before, between, after)
    return table


@contextmanager
def showing(console: Console, words: str, state: Path | None = None) -> Iterator[Surroundings]:
    """Say what is done while the block runs, and in which step it is; yields surroundings for the work.

    Args:
        console: the console to write to.
        words: what is done.
        state: the directory for the state of trainings; None to keep none.
    """
    with console.status(words) as status:
        yield Surroundings(state, on_step=lambda step: status.update(_status_of(step)))


def _status_of(step: Step) -> str:
    """A step in one line, with the time left."""
    left = "" if step.seconds_left is None else f", about {duration(step.seconds_left)} left"
    return f"{step.sentence}{left}"


def count(number: int, noun: str) -> str:
    """A number with its noun in singular or plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def duration(seconds: float) -> str:
    """A duration for people: seconds, minutes and seconds, or hours and minutes."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_left:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"

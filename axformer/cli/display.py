"""What a person sees of a pass: a live display on a terminal, one line a trial where the output is piped."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from axformer.config import PassConfig
from axformer.elements import Dimensions
from axformer.order_search import pass_configs, passes_in
from axformer.progress import progress_of
from axformer.trial import Phase, Trial, Verdict

RECENT = 6
_COLOURS = {Verdict.BASE: "dim", Verdict.ACCEPT: "bold green", Verdict.REFINE: "yellow", Verdict.REJECT: "dim"}


class Display(Protocol):
    """Shows trials as they come."""

    def show(self, trial: Trial) -> None:
        """Take note of one more trial."""

    def end(self) -> None:
        """Take note that the pass is over."""


@contextmanager
def display_for(console: Console, dimensions: Dimensions, config: PassConfig) -> Iterator[Display]:
    """The display that fits where the output goes."""
    if not console.is_terminal:
        yield _Lines(console, dimensions, config)
        return
    with Live(console=console, refresh_per_second=8) as live:
        yield _Screen(live, dimensions, config)


class _Lines:
    """One plain line a trial."""

    def __init__(self, console: Console, dimensions: Dimensions, config: PassConfig) -> None:
        self._console = console
        self._dimensions = dimensions
        self._config = config
        self._trials: list[Trial] = []

    def show(self, trial: Trial) -> None:
        self._trials.append(trial)
        progress = progress_of(self._trials, self._dimensions, self._config)
        helped = "" if trial.helped is None else f" helped={trial.helped}/{trial.samples}"
        self._console.print(
            f"{progress.done}/{progress.known} {_pass_name(self._trials, self._config)}"
            f"{trial.element or 'base'} {trial.verdict.value} "
            f"loss{'>=' if trial.loss_is_bound else '='}{trial.loss:.6f} min={trial.min_loss:.6f}{helped} {trial.seconds:.1f}s",
            soft_wrap=True,
        )

    def end(self) -> None:
        """The last line has said it."""


class _Screen:
    """A bar, the figures that move, and the last trials."""

    def __init__(self, live: Live, dimensions: Dimensions, config: PassConfig) -> None:
        self._live = live
        self._dimensions = dimensions
        self._config = config
        self._trials: list[Trial] = []
        self._bar = Progress(TextColumn("[bold]Elements"), BarColumn(bar_width=None), MofNCompleteColumn())
        self._task = self._bar.add_task("elements", total=None)

    def show(self, trial: Trial) -> None:
        self._trials.append(trial)
        self._update(ended=False)

    def end(self) -> None:
        self._update(ended=True)

    def _update(self, *, ended: bool) -> None:
        progress = progress_of(self._trials, self._dimensions, self._config, ended=ended)
        self._bar.update(self._task, completed=progress.done, total=progress.known)
        self._live.update(Group(self._bar, self._figures(progress.seconds_left), self._recent()))

    def _figures(self, seconds_left: float | None) -> Text:
        trials = passes_in(self._trials)[-1]
        base = trials[0].loss
        accepted = [trial for trial in trials if trial.verdict is Verdict.ACCEPT]
        loss = accepted[-1].loss if accepted else base
        removed = [trial for trial in accepted if trial.phase is not Phase.HARD_ATTENTION]
        hard = len(accepted) - len(removed)
        text = Text.assemble(_pass_name(self._trials, self._config), "Loss ", (f"{loss:.4f}", "bold"))
        text.append(f" (base {base:.4f}, {_change(loss, base)})")
        text.append(f"  ·  removed {_count(len(removed), 'element')}, ")
        text.append(f"{sum(trial.parameters for trial in removed):,} parameters")
        if hard:
            text.append(f"  ·  hard attention in {_count(hard, 'layer')}")
        if seconds_left is not None:
            text.append(f"  ·  about {_duration(seconds_left)} left", style="dim")
        return text

    def _recent(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for trial in self._trials[-RECENT:]:
            helped = "" if trial.helped is None else f"{trial.helped}/{trial.samples} helped"
            style = _COLOURS[trial.verdict]
            loss = f"{'≥' if trial.loss_is_bound else ''}{trial.loss:.4f}"
            table.add_row(trial.element or "base", loss, helped, trial.verdict.value, style=style)
        return table


def closing_table(report: dict[str, Any]) -> Table:
    """Before and after, from a report."""
    base, pruned = report["base"], report["pruned"]
    table = Table(title="Before and after", title_justify="left")
    for name in ("", "before", "after", "change"):
        table.add_column(name, justify="left" if not name else "right")
    for data, name in (("validation", "validation"), ("test", "held-out")):
        for key, before in (base[data] or {}).items():
            after = pruned[data][key]
            table.add_row(f"{name} {key.replace('_', ' ')}", f"{before:.4f}", f"{after:.4f}", f"{after - before:+.4f}")
    table.add_section()
    for name, key, scale, form in (
        ("parameters", "parameters", 1, ",.0f"),
        ("weight files, MB", "bytes", 1e6, ",.1f"),
        ("operations, millions", "operations", 1e6, ",.1f"),
        ("latency, ms", "latency_ms", 1, ".2f"),
    ):
        before, after = base[key] / scale, pruned[key] / scale
        table.add_row(name, format(before, form), format(after, form), _change(after, before))
    removed, hard = _count(len(report["removed"]), "element"), _count(len(report["hard_attention"]), "layer")
    kept = [one["order"] for one in report.get("orders") or [] if one["kept"]]
    table.caption = (
        f"{removed} removed, hard attention in {hard}\n{report['trials']} trials in {_duration(report['seconds'])}"
        + "".join(f"\nbest of {len(report['orders'])} orders: {order}" for order in kept)
    )
    table.caption_justify = "left"
    return table


def _pass_name(trials: list[Trial], config: PassConfig) -> str:
    """Which of several passes the last trial belongs to; empty where there is one."""
    configs = pass_configs(config)
    if len(configs) == 1:
        return ""
    place = len(passes_in(trials))
    return f"[{place}/{len(configs)} {configs[place - 1].order.value}] "


def _change(after: float, before: float) -> str:
    return f"{after / before - 1:+.1%}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"

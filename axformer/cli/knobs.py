"""``axformer knobs``: every knob, or one of them explained."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from axformer.cli.characters import Terminal
from axformer.cli.failing import failing
from axformer.config import METHODS, config_of
from axformer.config.goals import ABOUT_GOALS, config_for, parse_goal, written
from axformer.config.nearest import or_all
from axformer.errors import ConfigError
from axformer.wire.knob_list import KnobRead, KnobsRead, list_knobs

_WIDEST = 16
"""Columns of a default in the list."""
_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "null": "null",
    "boolean": "true or false",
}


def knob_names(incomplete: str) -> list[str]:
    """Shell completion: the knobs with this prefix."""
    return [knob.name for knob in list_knobs().knobs if knob.name.startswith(incomplete)]


def knobs(
    name: Annotated[
        str | None, typer.Argument(help="A knob; without it all are listed.", metavar="KNOB", autocompletion=knob_names)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the knobs as JSON.")] = False,
) -> None:
    """List the knobs, or explain one.

    It says what the knob does, its default, what it accepts, and which presets and goals set it."""
    with failing():
        known = list_knobs()
        chosen = known.knobs if name is None else [_named(known, name)]
    if as_json:
        print(json.dumps([knob.model_dump(mode="json") for knob in chosen], indent=1))  # noqa: T201 - this is what was asked for
        return
    console = Terminal()
    if name is None:
        _list(console, known)
    else:
        _explain(console, known, chosen[0])


def _named(known: KnobsRead, name: str) -> KnobRead:
    found = next((knob for knob in known.knobs if knob.name == name), None)
    if found is None:
        raise ConfigError(
            f"knob '{name}' is unknown; {or_all(name, [knob.name for knob in known.knobs], 'the knobs are')}"
        )
    return found


def _list(console: Console, known: KnobsRead) -> None:
    for title, group in _groups(known):
        table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), show_header=False)
        table.add_column(no_wrap=True, style="bold")
        table.add_column(style="dim", max_width=_WIDEST)
        table.add_column()
        for knob in group:
            table.add_row(knob.name, json.dumps(knob.default), _begun(knob.reason))
        console.print(table)
        console.print()
    console.print("One of them in full: axformer knobs target_speedup", soft_wrap=True)


def _groups(known: KnobsRead) -> Iterator[tuple[str, list[KnobRead]]]:
    ordinary = [knob for knob in known.knobs if not knob.paper_only]
    yield "every method", [knob for knob in ordinary if len(knob.methods) == len(METHODS)]
    several = [knob for knob in ordinary if 1 < len(knob.methods) < len(METHODS)]
    if several:
        yield "several methods, which its explanation names", several
    for method in METHODS:
        yield (
            f"{METHODS[method].about.title} (method={method})",
            [knob for knob in ordinary if knob.methods == (method,)],
        )
    of_paper = [knob for knob in known.knobs if knob.paper_only]
    yield "only with preset=published, to reproduce the paper's tables or program", of_paper


def _explain(console: Console, known: KnobsRead, knob: KnobRead) -> None:
    console.print(knob.name, style="bold")
    console.print(_plain(knob.reason))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for fact, text in _facts(known, knob):
        table.add_row(fact, text)
    console.print(table)


def _facts(known: KnobsRead, knob: KnobRead) -> Iterator[tuple[str, str]]:
    configs = [config_of({"method": method}, has_variant=knob.paper_only) for method in knob.methods]
    defaults = {config.method: config.model_dump(mode="json")[knob.name] for config in configs}
    if len(set(map(json.dumps, defaults.values()))) == 1:
        yield "default", json.dumps(knob.default)
    else:
        yield "default", ", ".join(f"{json.dumps(value)} with method={method}" for method, value in defaults.items())
    yield "accepts", "; or ".join(_accepted(knob.accepts))
    yield "methods", ", ".join(knob.methods)
    for kind, values in (("presets", known.presets), ("goals", _of_goals())):
        told = _settings(knob.name, values, defaults)
        if told:
            yield kind, told
    yield "to set it", f"--set {knob.name}={_example(known, knob)}"


def _example(known: KnobsRead, knob: KnobRead) -> str:
    """A value that a goal or a preset gives it, or else its default."""
    settings = [*_of_goals().values(), *known.presets.values()]
    values = [knobs[knob.name] for knobs in settings if knobs.get(knob.name) not in (None, knob.default)]
    value = next(iter(values), knob.default)
    return "VALUE" if value is None else value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _of_goals() -> dict[str, dict[str, Any]]:
    """Every knob with its value, by goal."""
    goals = [written(name) for name in ABOUT_GOALS]
    return {goal: config_for(parse_goal(goal))[1].model_dump(mode="json") for goal in goals}


def _settings(name: str, values: Mapping[str, Mapping[str, Any]], defaults: Mapping[str, Any]) -> str:
    """Which presets or goals give a knob another value than the default of its method."""
    return ", ".join(
        f"{json.dumps(knobs[name])} in {one}"
        for one, knobs in values.items()
        if name in knobs and knobs[name] != defaults[knobs["method"]]
    )


def _accepted(schema: Mapping[str, Any]) -> Iterator[str]:
    """What a JSON Schema accepts, in words; each yielded text is an alternative."""
    if "anyOf" in schema:
        for one in schema["anyOf"]:
            yield from _accepted(one)
    elif "enum" in schema:
        yield ", ".join(map(str, schema["enum"]))
    elif schema.get("type") == "array":
        yield f"a list, each {next(_accepted(schema['items']), 'anything') if 'items' in schema else 'anything'}"
    else:
        bounds = [f"{word} {schema[key]:g}" for key, word in _BOUNDS.items() if key in schema]
        yield " ".join([_KINDS.get(schema.get("type", ""), "a value"), *([" and ".join(bounds)] if bounds else [])])


def _begun(reason: str) -> str:
    """The beginning of a reason, up to the end of its first sentence or a semicolon."""
    text = _plain(reason)
    return re.split(r";|(?<!Alg)\.(?=\s|$)", text, maxsplit=1)[0]


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "").split())

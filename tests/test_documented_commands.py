"""Commands in the documents are commands of today: each is parsed by the program that it calls."""

import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from axformer.cli import inputs, options
from axformer.cli.main import app
from docs.hooks.reference import document
from tests.documents import PAGES, ROOT, commands_in, commands_of

LISTED = getattr(get_command(app), "listed")  # noqa: B009 - a group has it; its type says a command
OTHERS = {
    *(
        "call",
        "uploaded",
        "cat",
        "npm",
        "celery",
        "cp",
        "curl",
        "docker",
        "echo",
        "head",
        "jq",
        "kubectl",
        "ls",
        "mkdir",
        "pip",
        "python",
        "python3",
    ),
    *("sort", "source", "tar", "{", "}"),
}
"""Programs that are not ours, and what ours are run with."""


def assert_parses(words: Sequence[str]) -> None:
    """Have the command line itself parse a command, and its goals, knobs, columns and forms."""
    command: Any = get_command(app)
    arguments = list(words[1:])
    while hasattr(command, "resolve_command"):
        context = command.make_context(command.name, arguments)
        _, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
    given = command.make_context(command.name, arguments).params
    if "set_" in given:
        run_options(given).run().settled()
    elif "columns" in given:
        inputs.columns_of(given["columns"])
    if given.get("forms"):
        options.forms_of(given["forms"])


def run_options(given: Mapping[str, Any]) -> options.RunOptions:
    """The options of a run among those of a command."""
    names = {field.name for field in fields(options.RunOptions)}
    return options.RunOptions(**{name: value for name, value in given.items() if name in names})


def unknown_options(module: str, words: Sequence[str]) -> set[str]:
    """The long options that neither a module of ours nor a neighbour of its package has, as a text or as a parameter."""
    spec = importlib.util.find_spec(module)
    assert spec is not None, f"there is no module {module}"
    place = Path(str(spec.origin))
    files = place.parent.glob("*.py" if place.stem in ("__init__", "__main__") else f"{place.stem}*.py")
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    options = {word for word in words if word.startswith("--")}
    return {name for name in options if f'"{name}"' not in text and f"{name[2:].replace('-', '_')}:" not in text}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_a_page_are_parsed_by_the_programs_that_they_call(page: Path) -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    for words in commands_of(page):
        match words:
            case ["axformer", *_]:
                assert_parses(words)
            case ["make", target, *settings]:
                assert target in targets, f"{page.name}: there is no make {target}"
                assert all(re.match(r"[A-Z]+=", setting) for setting in settings), words
            case ["python", "-m", module, *rest]:
                assert not unknown_options(module, rest), words
            case ["python", script, *_] if script.endswith(".py"):
                assert (ROOT / script).is_file() or (page.parent / script).is_file(), f"{page.name}: no {script}"
            case _:
                assert words[0] in OTHERS, f"{page.name}: {' '.join(words)}"


def test_readme_and_the_first_job_show_commands_of_each_kind() -> None:
    shown = {
        words[1]
        for name in ("README.md", "docs/first-job.md")
        for words in commands_of(ROOT / name)
        if words[0] == "axformer"
    }
    assert {"prune", "submit", "watch", "download", "login", "knobs"} <= shown


def test_addresses_that_curl_is_given_are_routes() -> None:
    routes = [re.sub(r"\{[^}]+\}", "[^/]+", path) for path in document()["paths"]]
    used = {
        word.replace("$API", "/v1").partition("?")[0]
        for page in PAGES
        for words in commands_of(page)
        for word in words
        if word.startswith("$API/")
    }
    assert len(used) >= 4
    for address in used:
        assert any(re.fullmatch(route, address) for route in routes), f"there is no {address}"


def test_every_command_has_an_example_that_it_parses() -> None:
    for name, about in LISTED.items():
        assert about.examples
        for words in [command for example in about.examples for command in commands_in(example)]:
            assert words[:2] == ["axformer", name]
            assert_parses(words)


@pytest.mark.parametrize("name", LISTED)
def test_a_help_page_ends_with_its_examples(name: str) -> None:
    command = getattr(get_command(app), "commands")[name]  # noqa: B009 - a group has them; its type says a command
    assert all(example in command.epilog for example in LISTED[name].examples)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("axformer prune x --data y --output z --gaol no-worse", "gaol"),
        ("axformer prune x --data y --output z --set knob=1", "knob 'knob' is unknown"),
        ("axformer prune x --data y --output z --goal faster=2", "goal 'faster=2' is unknown"),
        ("axformer show", "job"),
    ],
)
def test_a_command_that_the_command_line_would_refuse_is_seen(wrong: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        assert_parses(next(commands_in(wrong)))

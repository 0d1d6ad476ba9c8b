"""The list of commands: light, true to the commands themselves, and nothing left out of it."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

import axformer.cli
from axformer.cli.main import app

LIBRARIES = {"torch", "transformers", "safetensors", "pyarrow", "numpy", "scipy", "httpx2", "pydantic"}
"""What takes long to import, or may one day."""
ASKS = (
    "import sys\nfrom axformer.cli.main import app\ntry:\n    app(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
    "print(*sys.modules)"
)


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a fresh Python has loaded when the command has ended."""
    done = subprocess.run([sys.executable, "-c", ASKS, *arguments], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def commands() -> dict[str, Any]:
    return dict(getattr(get_command(app), "commands"))  # noqa: B009 - a group has them; its type says a command


def test_the_list_of_commands_imports_no_command_and_no_library() -> None:
    loaded = loaded_by("--help")
    assert not loaded & LIBRARIES
    ours = {name for name in loaded if name.startswith("axformer")}
    assert ours == {
        "axformer",
        "axformer.cli",
        "axformer.reporting",
        "axformer.reporting.markdown",
        *(f"axformer.cli.{name}" for name in ("characters", "commands", "main")),
    }


@pytest.mark.parametrize("name", ["prune", "apply", "export"])
def test_the_help_of_a_local_command_imports_the_knobs_and_nothing_that_computes_or_connects(name: str) -> None:
    loaded = loaded_by(name, "--help")
    assert "axformer.config" in loaded
    assert not loaded & (LIBRARIES - {"pydantic"})
    assert not {
        one for one in loaded if one.startswith(("axformer.client", "axformer.methods", "axformer.forms.fresh"))
    }


def test_each_summary_is_the_beginning_of_its_command_s_help() -> None:
    listed = getattr(get_command(app), "listed")  # noqa: B009 - see above
    for name, command in commands().items():
        words = " ".join(inspect.cleandoc(command.help).split())
        assert words.startswith(listed[name].summary.removesuffix(".")), name


def test_every_command_of_a_module_is_in_the_list() -> None:
    defined = set()
    for path in Path(axformer.cli.__path__[0]).glob("*.py"):
        if "Annotated[" in path.read_text(encoding="utf-8") or "typer.Typer(" in path.read_text(encoding="utf-8"):
            defined.add(path.stem)
    shared = {"commands", "inputs", "main", "options", "remote"}
    listed = getattr(get_command(app), "listed")  # noqa: B009 - see above
    assert defined - shared <= {about.module for about in listed.values()}


def test_a_command_that_is_not_there_is_named_beside_one_that_is_like_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        app(["prun"])
    assert ended.value.code == 2
    assert "Did you mean 'prune'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "instead"),
    [(name, "queue each run by axformer submit --label") for name in ("grid", "group", "groups")]
    + [
        ("features", "axformer analyze --report features says"),
        ("disagree", "axformer answers writes the answers"),
        ("plot", "plan.svg and path.svg lie in"),
        ("families", "docs/families.md has the families"),
        (
            "certify --data",
            "axformer answers writes the answers of each model; of two, axformer certify --answers OLD NEW",
        ),
    ],
)
def test_a_command_that_is_gone_says_what_to_do_instead(
    name: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        app([*name.split(), "grid.toml"])
    assert ended.value.code == 2
    words = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert f"There is no command '{name}' any more; {instead}" in words


def test_a_group_of_commands_is_one_of_the_commands() -> None:
    assert isinstance(commands()["keys"], typer.core.TyperGroup)

"""Read the files of a result, and say of what is none which directory is meant."""

from pathlib import Path

from axformer.errors import PlanError

PLAN_NAME = "plan.json"
_MADE = "the directory that axformer prune wrote"


def read_result(given: Path, name: str) -> str:
    """The text of a file of a result.

    Args:
        given: the directory of the result, or the file itself.
        name: its name, for example ``plan.json``.

    Raises:
        PlanError: it is not there, or cannot be read.
    """
    file = given / name if given.is_dir() else given
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise no_result(given, name) from None
    except UnicodeDecodeError:
        raise PlanError(f"'{file}' is not text; give {name}, or {_MADE}, unpacked") from None
    except OSError as error:
        raise PlanError(f"'{file}' cannot be read: {error.strerror}") from None


def no_result(given: Path, name: str) -> PlanError:
    """The error for a path that is not the directory of a result, with the directory to give instead, if one is near."""
    whole = given.resolve()
    if not given.exists():
        return PlanError(f"'{given}' does not exist; give {_MADE}")
    if (whole.parent / name).exists():
        return PlanError(f"'{given}' is a part of a result; give the directory above, {given.parent}")
    below = sorted(path.parent.name for path in given.glob(f"*/{name}"))
    if below:
        return PlanError(f"'{given}' holds results in directories of their own; give one, such as {given / below[0]}")
    if (given / "config.json").exists():
        return PlanError(f"'{given}' is a model and not the result of a run: there is no {name} in it; give {_MADE}")
    return PlanError(f"'{given}' is no result of a run: there is no {name} in it; give {_MADE}")

"""The errors of the library, as one tree.

AxFormerError
├── InputError            the caller's input cannot be used; the message names the value and the remedy
│   ├── ConfigError       a knob is unknown or out of range
│   ├── CheckpointError   the checkpoint is missing, damaged, or of a kind that is not supported
│   ├── DataError         the data cannot be read, or does not fit the model
│   ├── PoorModelError    the untouched model is worse than guessing on the deciding data
│   ├── PlanError         a plan or a stored trace does not fit this model
│   └── WrongTypeError    a Python object of an unknown type was given; it is a TypeError too
├── ArtifactError         a finished model failed its own check and was not published
└── FormError             one form of the finished model cannot be made; the others can

Each class carries a ``code`` (stable, for programs); each message says what was wrong, with which value, what to do.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class AxFormerError(Exception):
    """Base of all errors of the library."""

    code = "axformer_error"


class InputError(AxFormerError):
    """The caller's input cannot be used as it is."""

    code = "invalid_input"


class ConfigError(InputError):
    """A knob is unknown or out of range.

    Args:
        message: for people.
        field: the field of the run that is wrong (:class:`axformer.wire.run.Run`); None where the message alone says.
    """

    code = "invalid_config"

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class CheckpointError(InputError):
    """The checkpoint is missing, damaged, or of a kind that is not supported."""

    code = "invalid_checkpoint"


class DataError(InputError):
    """The data cannot be read, or does not fit the model."""

    code = "invalid_data"


class PoorModelError(InputError):
    """The untouched model is worse than guessing on the data that decides."""

    code = "poor_model"


class PlanError(InputError):
    """A plan or a stored trace does not fit this model."""

    code = "invalid_plan"


class WrongTypeError(InputError, TypeError):
    """A Python object of an unknown type was given."""

    code = "wrong_type"


class ArtifactError(AxFormerError):
    """A finished model failed its own check and was not published."""

    code = "artifact_check_failed"


class NotTakenError(AxFormerError):
    """A model hub or a tracker did not take a result.

    Args:
        message: for people.
        why: the reason in a few words; None where the message alone says.
        retryable: whether the next attempt may succeed.
    """

    code = "not_taken"

    def __init__(self, message: str, why: str | None = None, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.why = why or message
        self.retryable = retryable


class FormError(AxFormerError):
    """A form of the finished model cannot be made of it."""

    code = "form_not_made"


def first_line(error: Exception) -> str:
    """The first line of another library's error message, because messages here have one line."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def reason_of(refused: Mapping[str, Any]) -> str:
    """Describe why pydantic refuses a value.

    Args:
        refused: an item of ``ValidationError.errors()``. For our own validators, the leading name of the exception is removed,
            since it means nothing to users.
    """
    message: str = refused["msg"]
    return message.removeprefix("Value error, ")


_NO_MEMORY = "can't allocate memory"  # the text of PyTorch's CPU allocator in a plain RuntimeError


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the memory of this machine or of a GPU ran out. PyTorch, not imported here, has an error of its own for that."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and _NO_MEMORY in str(error)


class LibraryPanicError(Exception):
    """A library in Rust panicked on its input, such as a tokenizer whose pattern fails on a text; the library still works.

    A panic arrives as a class that is no ``Exception`` and cannot be imported, and would end the whole process.
    """


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Turn panics inside the block into errors.

    Raises:
        LibraryPanicError: for each panic.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise LibraryPanicError(str(error)) from None

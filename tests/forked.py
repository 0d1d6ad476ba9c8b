"""Fresh Pythons in a tenth of the time: forked from a process that has imported the large libraries, and nothing of ours.

That process has one thread, no test's data, and lasts as long as the test run. It knows nothing of this package, so that a
program which must do without it is found out here as well. What a forked process says of memory and of seconds is not what a
fresh one needs; :mod:`tests.axformer.forms.test_fresh` asks real ones.
"""

import atexit
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache

from axformer.forms.interpreter import FreshInterpreter
from tests.template import Template

LIBRARIES = (
    "torch",
    "transformers.modeling_utils",
    "transformers.generation.utils",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.stats",
    "pydantic.main",
)
"""What takes long to import. None of it starts a thread, which would be lost in a fork."""
SERVICE = (
    "fastapi",
    "uvicorn",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "kombu.transport.redis",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.orm",
    "pydantic_settings",
    "structlog",
)
"""What a worker and the API import besides."""


@cache
def start() -> Template:
    """The process that forks, started by the first call; it imports while this one goes on."""
    from axformer.architectures.registry import ARCHITECTURES  # where something is forked, this process has PyTorch too

    names = [family.replace("-", "_") for family in ARCHITECTURES]
    template = Template.start(
        [*LIBRARIES, *(f"transformers.models.{name}.modeling_{name}" for name in names), *SERVICE]
    )
    atexit.register(template.end)
    return template


def forking(*, nested: bool = False) -> AbstractContextManager[None]:
    """Fork each Python that is started meanwhile by this process, and where ``nested`` also by those."""
    return start().forking(nested=nested)


class ForkedInterpreter(FreshInterpreter):
    """A forked one, to the same end."""

    def __init__(self, arguments: Sequence[str]) -> None:
        with forking():
            super().__init__(arguments)


def forked_interpreter(arguments: Sequence[str], said: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with this on its standard input."""
    return ForkedInterpreter(arguments).tell(said)

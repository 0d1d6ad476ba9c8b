"""A confined process and its job's directory, from the worker's side: messages to it, and checked messages from it."""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from store.settings import Settings
from worker.sandbox.errors import ProcessDiedError, ProcessMisbehavedError, WorkFailedError
from worker.sandbox.launch import ROOT
from worker.sandbox.lines import CheckStop, LineTooLongError
from worker.sandbox.messages import FROM_PROCESS, REFUSALS, Answer, Failed, Message, Ready, Refused, Restrictions
from worker.sandbox.probe import check_required
from worker.sandbox.process import INPUTS, MADE, STATE, Start
from worker.sandbox.workspace import Workspace

M = TypeVar("M", bound=Message)


class Sandbox:
    """One process for one job. Closing it ends the process and removes its files."""

    def __init__(self, settings: Settings, start: Start) -> None:
        """Start the process; :meth:`make_ready` waits until it is ready."""
        self._settings = settings
        self._workspace = Workspace(settings.ahead_dir, STATE)
        self._is_closed = self._has_restrictions = self._has_own_root = False
        self._first_name = self.directory
        try:
            for name in (INPUTS, MADE):
                (self.directory / name).mkdir(mode=0o700)
            self._process = start(self.directory, settings)
        except BaseException:
            self._workspace.remove()
            raise
        self._ready: Ready | None = None

    @property
    def directory(self) -> Path:
        """The directory of the job."""
        return self._workspace.path

    @property
    def inputs(self) -> Path:
        """Directory of the job's inputs, which the process may read."""
        return self.directory / INPUTS

    @property
    def made(self) -> Path:
        """Directory that the process writes to."""
        return self.directory / MADE

    @property
    def state(self) -> Path:
        """Directory for what lets the job continue in another process. Earlier ones of the job on this machine may have filled
        it."""
        return self.directory / STATE

    def seen(self, path: Path) -> Path:
        """A path in the job's directory as the process names it: one with a root of its own goes on by the first name."""
        return self._first_name / path.relative_to(self.directory) if self._has_own_root else path

    def is_alive(self) -> bool:
        """Whether its process runs and its files exist."""
        return self._process.is_alive() and self.made.is_dir()

    def give_to(self, job_id: str) -> None:
        """Rename the directory for a job, replacing what a killed worker left of the same job, but for its state."""
        self._wait_for_restrictions(lambda: None)  # they refer to the directories by their present names
        self._workspace.give_to(self._settings.work_dir, job_id)

    def make_ready(self, check_stop: CheckStop = lambda: None) -> Ready:
        """Wait until the process is ready for a job.

        Raises:
            RestrictionsMissingError: the machine does not grant restrictions that the operator requires.
        """
        self._wait_for_restrictions(check_stop)
        if self._ready is None:
            self._ready = self.hear(Ready, check_stop)
        return self._ready

    def tell(self, message: Message, check_stop: CheckStop) -> None:
        """Send a message.

        Raises:
            ProcessDiedError: the process has ended.
        """
        try:
            self._process.lines.send(message.line(), check_stop)
        except BrokenPipeError:
            raise self._died() from None

    def hear(self, kind: type[M], check_stop: CheckStop) -> M:
        """Wait for the next message, which must be of this kind; ``check_stop`` is called meanwhile.

        Raises:
            InputError, ArtifactError: the library refuses the job.
            WorkFailedError: the process could not continue.
            ProcessDiedError: the process has ended.
            ProcessMisbehavedError: the message is of another kind, or not valid.
        """
        message = self.hear_any(check_stop)
        if not isinstance(message, kind):
            raise ProcessMisbehavedError(f"{type(message).__name__} instead of {kind.__name__}")
        return message

    def hear_any(self, check_stop: CheckStop) -> Answer:
        """Wait for the next message of any kind; raises what :meth:`hear` raises."""
        try:
            return understood(self._process.lines.receive(check_stop))
        except EOFError:
            raise self._died() from None
        except LineTooLongError as error:
            raise ProcessMisbehavedError(str(error)) from None

    def what_is_there(self) -> Iterable[Answer]:
        """The messages that have already arrived, without waiting for more."""
        try:
            while (line := self._process.lines.poll()) is not None:
                yield understood(line)
        except (EOFError, LineTooLongError):
            return

    def end_process(self) -> None:
        """End the process; its files stay until :meth:`close`."""
        if not self._is_closed:
            self._is_closed = True
            self._process.end()

    def close(self) -> None:
        """End the process and remove the files, but for the job's state."""
        self.end_process()
        self._workspace.remove()

    def _wait_for_restrictions(self, check_stop: CheckStop) -> None:
        if not self._has_restrictions:
            refused = self.hear(Restrictions, check_stop).refused
            check_required(refused, self._settings)
            self._has_restrictions, self._has_own_root = True, ROOT not in refused

    def _died(self) -> ProcessDiedError:
        self._is_closed = True
        return ProcessDiedError(self._process.end())


def understood(line: bytes) -> Answer:
    """Parse a line from a job's process.

    Raises:
        SandboxError: the line is not a message, or says that the process could not continue.
        AxFormerError: the message says that the library refuses the job.
    """
    try:
        message = FROM_PROCESS.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ProcessMisbehavedError(f"a line that is not a message: {first['type']} at {first['loc']}") from None
    if isinstance(message, Refused):
        raise REFUSALS[message.error](message.message)
    if isinstance(message, Failed):
        raise WorkFailedError(message.reason, message.detail)
    return message

"""A thread that does something again and again goes on, whatever one time ends with."""

import threading

import pytest

from worker.base.periodic import Periodic

SECONDS = 60.0


class Troubled(Periodic):
    """Fails in another way each time, until it works."""

    def __init__(self, *errors: BaseException) -> None:
        super().__init__("troubled", 0.001, begins_at_once=True)
        self._errors, self.worked = list(errors), threading.Event()

    def once(self) -> None:
        if self._errors:
            raise self._errors.pop(0)
        self.worked.set()


def test_no_error_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    troubled = Troubled(RecursionError("deep"), OSError(5, "away"), KeyError("x"), AssertionError())
    troubled.start()
    assert troubled.worked.wait(SECONDS)
    troubled.stop()
    troubled.join()
    said = capsys.readouterr()
    assert (said.out + said.err).count("troubled_failed") == 4

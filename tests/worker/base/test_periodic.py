"""A thread that does something again and again goes on, whatever one time ends with."""

import threading

from structlog.testing import capture_logs

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


def test_no_error_ends_it() -> None:
    troubled = Troubled(RecursionError("deep"), OSError(5, "away"), KeyError("x"), AssertionError())
    with capture_logs() as logs:
        troubled.start()
        assert troubled.worked.wait(SECONDS)
        troubled.stop()
        troubled.join()
    assert [line["event"] for line in logs] == ["troubled_failed"] * 4

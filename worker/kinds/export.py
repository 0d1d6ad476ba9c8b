"""An export: the trials are another job's and only replayed, and the model that they lead to is handed out."""

from worker.publication import publish
from worker.recorder import recorder_of
from worker.work import Work


def carry_out(work: Work) -> None:
    """Wait for the model, and publish it."""
    searched = work.conversation.searched()
    work.opened.speed = searched.speed
    recorder_of(work).end()
    publish(work, searched)

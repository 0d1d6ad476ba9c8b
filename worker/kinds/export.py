"""An export: replay another job's trials and publish the model that they lead to."""

from worker.publication import publish
from worker.recorder import recorder_of
from worker.work import Work


def carry_out(work: Work) -> None:
    """Wait for the model and publish it."""
    searched = work.conversation.searched()
    work.opened.speed = searched.speed
    recorder_of(work).end()
    publish(work, searched)

"""The errors of the store, as one tree below :class:`StoreError`."""


class StoreError(Exception):
    """Base of all errors of the store."""


class IllegalTransitionError(StoreError):
    """A job cannot go from its state to the one asked for."""


class LeaseLostError(StoreError):
    """The caller no longer holds the job: another worker does, or it has ended."""


class CancelRequestedError(StoreError):
    """The job is being cancelled, so it goes no further."""


class PauseRequestedError(StoreError):
    """The job is being paused, so it goes no further until it is resumed."""


class StorageError(StoreError):
    """Content cannot be stored or is not there."""


class TooLargeError(StorageError):
    """There are more bytes than allowed."""


class ContentChangedError(StorageError):
    """Content is not what was stored under its SHA-256."""


class StorageUnavailableError(StoreError):
    """The storage does not answer, or fails; what it has may be there the next time.

    Args:
        message: for the operator of the service.
        code: what the store has said, in its own word.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class StorageRefusedError(StorageUnavailableError):
    """The storage refuses this service until its operator has done something."""


class StorageFullError(StoreError):
    """The storage has no room for the content."""


class ArchiveError(StoreError):
    """An archive is damaged, or holds what it must not."""


class ArchiveTooLargeError(StoreError):
    """An archive holds more than is taken."""


class ReferenceFormError(StoreError):
    """A reference to a checkpoint or data is not written in a form that is understood."""


class EmbeddedServerError(StoreError):
    """An embedded server did not start."""


class VaultKeyError(StoreError):
    """A secret was made or encrypted with a key that the service no longer has."""


class StackError(StoreError):
    """A part of the service on this machine cannot run, or has ended by itself."""


class StoppedError(StoreError):
    """The service on this machine was asked to end."""

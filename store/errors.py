"""The errors of the store, as one tree.

StoreError
├── IllegalTransitionError   a job cannot go from its state to the one asked for
├── LeaseLostError           the job belongs to another worker, or has ended; this worker's results are discarded
├── CancelRequestedError     the job's owner asked to cancel it; the worker should stop and report that
├── PauseRequestedError      the job's owner asked to pause it; the worker should give it back
├── StorageError             content cannot be stored or is not there
│   ├── TooLargeError        more bytes than allowed
│   └── ContentChangedError  content is not what was stored; somebody else has changed it
├── StorageUnavailableError  the storage does not answer; content that was stored is there when it does again
│   └── StorageRefusedError  the storage refuses this service: no bucket, no access, or credentials that have ended
├── StorageFullError         the storage takes no more content
├── ArchiveError             an archive is damaged, or holds what it must not
├── ArchiveTooLargeError     an archive holds more than is taken
├── ReferenceFormError       a reference to a checkpoint or data is not written in a form that is understood
├── EmbeddedServerError      an embedded server did not start
├── SigningKeyError          a secret was made with another key than the service has now
├── StackError               a part of the service on this machine cannot run, or has ended by itself
└── StoppedError             the service on this machine was asked to end
"""


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


class SigningKeyError(StoreError):
    """A secret was made with another key than the service has now."""


class VaultKeyError(StoreError):
    """A stored token was encrypted with a key that the service no longer has."""


class StackError(StoreError):
    """A part of the service on this machine cannot run, or has ended by itself."""


class StoppedError(StoreError):
    """The service on this machine was asked to end."""

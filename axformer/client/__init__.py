"""A client of the AxFormer service, for programs: typed answers, retries that do nothing twice, live events, downloads that
resume. It needs no PyTorch.

    from axformer.client import Client

    with Client("https://axformer.example.com", "axk_...") as client:
        job = client.submit("reviews", checkpoint="hf://acme/bert-reviews", validation=Path("dev.jsonl"))
        if client.wait(job.id).has_succeeded:
            client.download(job.id, "smaller")
"""

from axformer.client.address import Address, AddressError
from axformer.client.answers import Artifact, Event, Job, PassPath, Queue, Upload
from axformer.client.client import Client
from axformer.client.errors import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    RefusedError,
    ServerFailedError,
    ServiceError,
    TooManyRequestsError,
    TransferError,
    UnauthorizedError,
    UnexpectedAnswerError,
    UnreachableError,
    WaitTimeoutError,
)
from axformer.client.following import Update
from axformer.client.patience import Patience

__all__ = [
    "Address",
    "AddressError",
    "Artifact",
    "Client",
    "ConflictError",
    "Event",
    "ForbiddenError",
    "InvalidRequestError",
    "Job",
    "NotFoundError",
    "PassPath",
    "Patience",
    "Queue",
    "RefusedError",
    "ServerFailedError",
    "ServiceError",
    "TooManyRequestsError",
    "TransferError",
    "UnauthorizedError",
    "UnexpectedAnswerError",
    "UnreachableError",
    "Update",
    "Upload",
    "WaitTimeoutError",
]

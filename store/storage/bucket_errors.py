"""What a bucket's answers mean for the service, in sentences that say what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
)

from store.errors import (
    ContentChangedError,
    StorageError,
    StorageFullError,
    StorageRefusedError,
    StorageUnavailableError,
)

_MISSING = frozenset({"NoSuchKey", "404", "NotFound"})
_CHANGED = frozenset({"PreconditionFailed", "412", "InvalidRange", "416"})
_NO_BUCKET = frozenset({"NoSuchBucket", "InvalidBucketName", "PermanentRedirect", "301"})
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestTimeTooSkewed"})
_UNKNOWN_KEY = frozenset({"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "AuthFailure"})
_DENIED = frozenset({"AccessDenied", "403", "Forbidden", "AllAccessDisabled", "AccountProblem"})
_FULL = frozenset(
    {"QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "InsufficientStorage", "507"}
)
_PERMISSIONS = "s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload, s3:ListBucket"
_NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError)


@contextmanager
def as_storage_errors(bucket: str, key: str = "") -> Iterator[None]:
    """Turn what the library raises into errors of the store.

    Raises:
        StorageError: there is no such object.
        ContentChangedError: it is another one than before.
        StorageFullError: the store takes no more.
        StorageRefusedError: the store refuses this service.
        StorageUnavailableError: it does not answer, or fails.
    """
    try:
        yield
    except ClientError as error:
        raise _meaning(error, bucket, key) from error
    except _NO_CREDENTIALS as error:
        raise StorageRefusedError(
            f"there are no credentials for the bucket '{bucket}' ({error}); set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or another source of credentials that the AWS tools know",
            type(error).__name__,
        ) from error
    except (BotoCoreError, OSError) as error:
        raise StorageUnavailableError(
            f"the store of the bucket '{bucket}' does not answer ({type(error).__name__}: {error}); check "
            "AXFORMER_STORAGE_ENDPOINT and the network",
            type(error).__name__,
        ) from error


def _meaning(error: ClientError, bucket: str, key: str) -> Exception:
    asked = f"s3://{bucket}/{key}"
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _NO_BUCKET:
        return StorageRefusedError(
            f"the bucket '{bucket}' is not there ({code}); create it, or correct AXFORMER_STORAGE, "
            "AXFORMER_STORAGE_ENDPOINT and AXFORMER_STORAGE_REGION",
            code,
        )
    if code in _MISSING:
        return StorageError(f"the storage has no {asked}; it was deleted, or is in another bucket")
    if code in _CHANGED:
        return ContentChangedError(f"{asked} was changed while it was read; restore it from a backup, or make it again")
    if code in _FULL or status == 507:
        return StorageFullError(f"the store of the bucket '{bucket}' is full ({code}); make room, or raise its quota")
    if refusal := _refusal(code, bucket, asked):
        return StorageRefusedError(refusal, code)
    return StorageUnavailableError(f"the store of the bucket '{bucket}' fails ({code}, status {status})", code)


def _refusal(code: str, bucket: str, asked: str) -> str | None:
    """What the operator must do about a refusal; None if it is none."""
    if code in _EXPIRED:
        return f"the credentials for the bucket '{bucket}' have ended ({code}); renew them, and check the clock"
    if code in _UNKNOWN_KEY:
        return f"the store does not know the credentials for the bucket '{bucket}' ({code}); correct AWS_ACCESS_KEY_ID"
    if code in _DENIED:
        return f"the credentials may not do this to {asked} ({code}); grant {_PERMISSIONS} on the bucket '{bucket}'"
    return None

"""All settings of the service. Nothing else reads the environment.

``DATABASE_URL`` and ``BROKER_URL`` are the names every host knows; all other variables carry the prefix ``AXFORMER_``.
"""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode

from store.setting_groups import (
    GIB,
    MIB,
    DatabaseSettings,
    FetchSettings,
    Keys,
    Pauses,
    RateSettings,
    RetainSettings,
    StorageSettings,
    WebhookSettings,
    config,
)

DRIVER = "postgresql+psycopg"
MAX_ATTEMPTS = 3
"""A worker may be lost to a power cut and once more by bad luck; the third time, the job is the likely cause."""
LEAST_BEATS = 3
"""Renewals within a lease: one may be late, and one lost."""
HALF_LIFE_SECONDS = 4 * 3600.0
"""A morning's use hardly counts on the next day, and an hour's is not forgotten over lunch."""
PRIORITY_SECONDS = 300.0
"""The ten points that people give to what is urgent put it 50 minutes ahead; nothing is ever put ahead by more than 17
hours, which is the whole range of 200 points."""
_BUCKET = re.compile(
    r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/(?P<prefix>[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*))?/?"
)
_REMOVED = {
    "AXFORMER_SHARDS": "a job runs in one process; start a worker for each GPU, with AXFORMER_DEVICE=cuda:0 and so on",
    "AXFORMER_SECRET_KEYS": "name its keys in AXFORMER_OLD_SECRET_KEYS, and run python -m api.admin secret rotate",
}
"""Variables of earlier versions, with advice for whoever still sets them."""
_FROM_ENVIRONMENT: Any = {}
"""The default of a group, which reads its own environment variables."""


class Settings(BaseSettings):
    """Settings of api, worker and migrations. Secrets print as stars; read them with ``get_secret_value()``."""

    model_config = config()

    database_url: SecretStr = Field(validation_alias=AliasChoices("DATABASE_URL", "database_url"))
    """PostgreSQL, the truth about every job. ``postgres://`` and ``postgresql://`` are read as psycopg 3."""
    broker_url: SecretStr = Field(
        default=SecretStr("redis://127.0.0.1:6379/0"), validation_alias=AliasChoices("BROKER_URL", "broker_url")
    )
    """Redis or Valkey, which only carries wake-up messages; by default one on this machine."""
    var_dir: Path = Path("var")
    """Where the service keeps its files: storage, caches, logs and the embedded servers' data."""
    storage: str | None = None
    """Where uploads and results are kept: a directory, or ``s3://bucket/prefix``, which several hosts can share; by default
    the directory ``storage`` in ``var_dir``."""
    file_roots: Annotated[tuple[Path, ...], NoDecode] = ()
    """Directories that ``file://`` references may point into, separated by the system's path separator. None by
    default, because a caller's path is read with the service's rights."""

    database: DatabaseSettings = _FROM_ENVIRONMENT
    object_store: StorageSettings = _FROM_ENVIRONMENT
    fetch: FetchSettings = _FROM_ENVIRONMENT
    rate: RateSettings = _FROM_ENVIRONMENT
    webhook: WebhookSettings = _FROM_ENVIRONMENT
    retain: RetainSettings = _FROM_ENVIRONMENT

    celery_queue: str = "axformer"
    """Name of the Celery queue, so that two installations can share one broker."""
    lease_seconds: float = Field(default=60.0, gt=0)
    """How long a claimed job belongs to a silent worker; a minute survives a slow disk or a database restart."""
    heartbeat_seconds: float = Field(default=1.0, gt=0)
    """How often a worker renews its lease, which is also how soon it notices that its job is to be cancelled."""
    slice_seconds: float = Field(default=120.0, gt=0)
    """How long a job runs before those that wait get their turn. Its model is loaded again, if it did not stay in memory,
    in some ten seconds, so shorter slices would cost more than a tenth of the time."""
    silent_opening_seconds: float = Field(default=600.0, gt=0)
    """How long a job's process may say nothing while it reads model and data, before it is ended and the job fails. It gives a
    sign of life for every thousand texts."""
    silent_seconds: float = Field(default=3600.0, gt=0)
    """The same afterwards: the longest single step is a form of the largest model, which gives no sign meanwhile."""
    job_seconds: float = Field(default=7 * 86_400.0, gt=0)
    """How long a job may hold workers in all, before it fails; a team may have a lower limit. Nothing else ends a process that
    goes on saying that it lives."""
    obey_seconds: float = Field(default=6.0, gt=0)
    """How long a worker's process may take to stop when its job is cancelled, or to give it back when the worker must end,
    before the supervisor kills it. A worker that must end has 10 s in all."""
    memory_bytes: int | None = Field(default=None, ge=1)
    """Main memory that a job may use, if the worker shares its machine; None means all of the machine or container."""
    gpu_memory_bytes: int | None = Field(default=None, ge=1)
    """GPU memory that a job may need, if workers share a card; None means all of the card or of its MIG slice."""
    announce_seconds: float = Field(default=5.0, gt=0)
    """How often an idle worker looks for waiting jobs without a message, for example because the broker lost it."""
    share_half_life_seconds: float = Field(default=HALF_LIFE_SECONDS, gt=0)
    """Half-life of the worker time that a team has used, when teams compete for workers."""
    priority_seconds: float = Field(default=PRIORITY_SECONDS, ge=0)
    """Waiting time that one point of priority is worth; it bounds how long a job of low priority can be overtaken."""
    device: str = "auto"
    """PyTorch device of the models (``cpu``, ``cuda``, ``cuda:1``); ``auto`` is the first GPU if there is one."""
    sandbox: Literal["available", "required"] = "available"
    """Whether a worker requires every restriction of a job's process (files, network, other processes). ``available`` uses
    those that the machine grants, and logs the others."""
    sandbox_file_bytes: int = Field(default=256 * GIB, ge=1)
    """Largest file that a job may write: what a pass keeps between trials may be in one."""
    job_disk_bytes: int | None = Field(default=None, ge=1)
    """Bytes that a job may have on its machine's disk beside its inputs; None sets no limit but that of the disk."""
    job_disk_files: int = Field(default=100_000, ge=1)
    """Files and directories that a job may have there; a job of the largest model with all forms has some hundred."""
    result_max_bytes: int = Field(default=64 * GIB, ge=1)
    """Most bytes of a job's result: four forms of the largest checkpoint that is fetched, and room."""
    max_attempts: int = Field(default=MAX_ATTEMPTS, ge=1)
    """Workers that a job may lose before it counts as the cause."""
    trial_batch: int = Field(default=50, ge=1)
    """Trials written in one transaction at most; one write costs as much as a handful of trials."""
    trial_batch_seconds: float = Field(default=1.0, gt=0)
    """How long a finished trial may wait for its batch, so that watchers see the trace grow."""

    page_limit_default: int = Field(default=50, ge=1)
    """Items on a page if the caller gives no limit."""
    page_limit_max: int = Field(default=1000, ge=1)
    """Most items on a page; a whole trace of a small model fits."""
    trace_chunk: int = Field(default=1000, ge=1)
    """Trials read from the database at a time while a whole trace is streamed."""
    upload_max_bytes: int = Field(default=2 * GIB, ge=1)
    """Largest upload accepted: a large encoder in float32 is 1.4 GB."""

    hub_endpoint: str = Field(
        default="https://huggingface.co", validation_alias=AliasChoices("HF_ENDPOINT", "hub_endpoint")
    )
    """The model hub behind ``hf://``, or a mirror of it."""
    hub_token: SecretStr | None = Field(default=None, validation_alias=AliasChoices("HF_TOKEN", "hub_token"))
    """Sent to the hub alone, for the owners that a team was granted; None reads public repositories only."""

    key_grace_hours: float = Field(default=24.0, ge=0)
    """How long a replaced key stays valid, so that programs can switch without a gap."""

    secret_key: SecretStr | None = Field(default=None, min_length=32)
    """The key that webhook secrets are derived from, together with salts in the database; the same for api and workers. If
    none is set, the file ``secret.key`` in ``var_dir`` holds one, created on first use."""
    old_secret_keys: Keys = ()
    """What ``secret_key`` was before, separated by commas: they still open what they have sealed, and seal nothing."""

    result_key: SecretStr | None = None
    """The Ed25519 key that signs results: 32 random bytes in base64, the same for all workers and the api. If none is set, one
    is derived from ``secret_key``."""

    handover_retry_seconds: Pauses = (30, 300, 1800, 7200)
    """Pauses between the attempts to put a job's files where its owner wants them, in seconds, separated by commas."""

    cache_max_bytes: int = Field(default=32 * GIB, ge=0)
    """Most bytes of fetched content that a machine keeps for other jobs; four of the largest checkpoints."""
    clean_seconds: float = Field(default=600.0, gt=0)
    """How often a worker looks for what can be removed."""

    json_max_bytes: int = Field(default=MIB, ge=1)
    """Largest request body other than an upload; the longest sensible job is a few kilobytes."""
    uploads_at_once: int = Field(default=16, ge=1)
    """Uploads received at the same time; each holds a thread, so slow senders must not take them all."""
    upload_slowest: int = Field(default=16 * 2**10, ge=0)
    """Bytes a second below which an upload is refused: a slow line, or somebody who holds a place."""
    upload_pace_seconds: float = Field(default=20.0, gt=0)
    """Over how long its speed is measured, and how long it may be silent."""
    looks_at_once: int = Field(default=2, ge=1)
    """Files that an API process looks into at a time, one for each team: a look takes as long as a file is large."""
    look_wait_seconds: float = Field(default=2.0, ge=0)
    """How long a look waits for its place before it is refused."""
    requests_waiting: int = Field(default=100, ge=0)
    """Requests that wait for a session at a time; more are refused at once, and half as many of one sender."""
    shed_seconds: float = Field(default=0.2, gt=0)
    """How long the first of them may have waited until new ones are refused: while more is asked than can be answered, all that
    are taken wait for about as long."""
    sessions_at_once: int = Field(default=8, ge=1)
    """Requests of an API process that hold a database session at the same time; the others wait for their turn. More would
    only fight for Python's lock; it must stay below ``pool_size`` plus ``pool_overflow``."""
    event_poll_seconds: float = Field(default=0.5, gt=0)
    """How often an event stream looks for new events; watchers do not notice half a second."""
    event_heartbeat_seconds: float = Field(default=15.0, gt=0)
    """Silence after which an event stream sends a comment; proxies cut connections that are silent for half a minute."""
    event_progress_seconds: float = Field(default=10.0, gt=0)
    """How often an event stream tells how far a long phase is; each time the caller's key is looked up."""
    wake_timeout_seconds: float = Field(default=2.0, gt=0)
    """How long the api tries to reach the broker after a job is posted; idle workers announce the job otherwise."""
    queue_view_seconds: float = Field(default=1.0, ge=0)
    """How long a snapshot of the queue serves all requests; a line of 2,000 jobs takes some 50 ms to read, and many people
    watch their jobs."""
    page_session_hours: float = Field(default=8.0, gt=0)
    """How long a browser stays signed in to the pages: a working day, so that a machine left alone overnight shows nothing."""
    page_look_seconds: float = Field(default=2.0, gt=0)
    """How often an open board checks for changes; checks within ``queue_view_seconds`` find nothing new."""
    eta_sample: int = Field(default=20, ge=1)
    """Finished jobs whose median run time predicts that of waiting jobs; enough to be stable, few enough to be recent."""

    @field_validator("database_url", mode="before")
    @classmethod
    def _with_driver(cls, url: Any) -> Any:
        text = url.get_secret_value() if isinstance(url, SecretStr) else str(url)
        scheme, separator, rest = text.partition("://")
        if not separator or scheme not in ("postgres", "postgresql", DRIVER):
            raise ValueError("is not a PostgreSQL address; write postgresql://user:password@host:5432/database")
        return SecretStr(f"{DRIVER}://{rest}")

    @field_validator("storage")
    @classmethod
    def _directory_or_bucket(cls, storage: str | None) -> str | None:
        if storage is not None and "://" in storage and _BUCKET.fullmatch(storage) is None:
            raise ValueError("is neither a directory nor a bucket; write /srv/axformer/files or s3://bucket/prefix")
        return storage or None

    @field_validator("file_roots", mode="before")
    @classmethod
    def _split_roots(cls, roots: Any) -> Any:
        return [root for root in roots.split(os.pathsep) if root] if isinstance(roots, str) else roots

    @field_validator("result_key")
    @classmethod
    def _ed25519_key(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and re.fullmatch("[A-Za-z0-9+/]{43}=", key.get_secret_value()) is None:
            raise ValueError("is no key of Ed25519, 32 bytes in base64; make one with: openssl rand -base64 32")
        return key

    @field_validator("file_roots")
    @classmethod
    def _absolute_roots(cls, roots: tuple[Path, ...]) -> tuple[Path, ...]:
        return tuple(root.resolve() for root in roots)

    @model_validator(mode="after")
    def _sets_nothing_removed(self) -> Self:
        for name, instead in _REMOVED.items():
            if name in os.environ:
                raise ValueError(f"{name} is of an earlier version and no longer there: {instead}")
        return self

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        """Refuse values that defeat each other: running jobs would be taken from their workers, or requests wait for each
        other."""
        if self.lease_seconds < LEAST_BEATS * self.heartbeat_seconds:
            raise ValueError(
                f"lease_seconds={self.lease_seconds:g} is shorter than {LEAST_BEATS} times "
                f"heartbeat_seconds={self.heartbeat_seconds:g}, so leases would end between two renewals; change one of them"
            )
        connections = self.database.pool_size + self.database.pool_overflow
        if self.sessions_at_once >= connections:
            raise ValueError(
                f"sessions_at_once={self.sessions_at_once} is not below pool_size and pool_overflow, together {connections}; "
                "change one of them"
            )
        if self.page_limit_default > self.page_limit_max:
            raise ValueError(
                f"page_limit_default={self.page_limit_default} is above page_limit_max={self.page_limit_max}; change one"
            )
        return self

    @classmethod
    def from_environment(cls) -> Self:
        """The settings of this process.

        Raises:
            pydantic.ValidationError: DATABASE_URL is missing, or a value is out of range; the message names it.
        """
        return cls.model_validate({})

    @property
    def storage_dir(self) -> Path:
        """Root of the storage of uploads and artifacts, if it is a directory."""
        return Path(self.storage) if self.storage else self.var_dir / "storage"

    @property
    def storage_bucket(self) -> tuple[str, str] | None:
        """Bucket and prefix of the storage, if it is in one."""
        found = _BUCKET.fullmatch(self.storage or "")
        return (found["bucket"], found["prefix"] or "") if found else None

    @property
    def spool_dir(self) -> Path:
        """Where content is written that is on its way to a bucket."""
        return self.var_dir / "spool"

    @property
    def cache_dir(self) -> Path:
        """Root of fetched checkpoints and data, kept by content."""
        return self.var_dir / "cache"

    @property
    def work_dir(self) -> Path:
        """Where running jobs keep their files; on the same file system as the cache, whose files are linked into it."""
        return self.var_dir / "work"

    @property
    def ahead_dir(self) -> Path:
        """Where directories of jobs are created in advance; on the same file system as ``work_dir``."""
        return self.var_dir / "ahead"


class StackSettings(BaseSettings):
    """Settings of the program that starts everything on one machine (``python -m store.serve``)."""

    model_config = config()

    database_url: SecretStr | None = Field(default=None, validation_alias=AliasChoices("DATABASE_URL", "database_url"))
    """A PostgreSQL to use; if none is set, an embedded one is started."""
    broker_url: SecretStr | None = Field(default=None, validation_alias=AliasChoices("BROKER_URL", "broker_url"))
    """A Redis or Valkey to use; if none is set, an embedded one is started."""
    var_dir: Path = Path("var")
    """As in ``Settings``; a relative path starts at the checkout."""
    file_roots: str | None = None
    """As in ``Settings``. If none are given and the database is embedded, all files of this machine may be read, since only
    the user who started the stack holds a key."""
    port: int | None = Field(default=None, ge=1, le=65535, validation_alias=AliasChoices("PORT", "port"))
    """Port of the API; if none is set, 8000 or the next free one."""
    ready_seconds: float = Field(default=120.0, gt=0)
    """How long the API may take to be ready; on a cold disk imports alone can take a minute."""
    stop_seconds: float = Field(default=30.0, gt=0)
    """How long API and worker each may take to end; the worker gives its job back meanwhile."""

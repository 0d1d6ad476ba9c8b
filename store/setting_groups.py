"""Settings that belong together. Each group reads its own environment variables, whose common prefix it names."""

from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

MIB, GIB = 2**20, 2**30
PREFIX = "AXFORMER_"


def config(group: str = "") -> SettingsConfigDict:
    """The configuration of settings whose environment variables begin with ``AXFORMER_`` and the name of a group."""
    return SettingsConfigDict(
        env_prefix=f"{PREFIX}{group}",
        title=f"{PREFIX}{group}*",
        populate_by_name=True,
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
        hide_input_in_errors=True,  # an address that is refused may hold a password
    )


def _split(values: Any) -> Any:
    return [value.strip() for value in values.split(",") if value.strip()] if isinstance(values, str) else values


def _split_hosts(hosts: Any) -> Any:
    return _split(hosts.lower()) if isinstance(hosts, str) else hosts


Hosts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_hosts)]
"""Names of hosts, separated by commas."""
Ports = Annotated[tuple[int, ...], NoDecode, BeforeValidator(_split)]
"""Numbers of ports, separated by commas."""
Pauses = Annotated[tuple[float, ...], NoDecode, BeforeValidator(_split)]
"""Seconds, separated by commas."""
Keys = Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(_split)]
"""Secrets, separated by commas."""


Days = Annotated[float, Field(gt=0, le=36_525)]
"""At most a century; the database knows no time that lies much longer ago."""


class DatabaseSettings(BaseSettings):
    """Connections to PostgreSQL. Their variables begin with ``AXFORMER_`` alone."""

    model_config = config()

    pool_size: int = Field(default=10, ge=1)
    """Database connections kept open by a process."""
    pool_overflow: int = Field(default=40, ge=0)
    """Connections opened above ``pool_size`` when needed. FastAPI runs 40 endpoints at a time, each with a session."""
    pool_timeout_seconds: float = Field(default=5.0, gt=0)
    """How long to wait for a free connection before the caller gets an error."""
    connect_timeout_seconds: int = Field(default=5, ge=1)
    """How long to wait for the database to accept a connection."""
    statement_timeout_ms: int = Field(default=30_000, ge=0)
    """Longest statement; every query here is a lookup or a page. 0 means no limit."""
    lock_timeout_ms: int = Field(default=10_000, ge=0)
    """Longest wait for a row lock; locks are held for one short transaction. 0 means no limit."""
    idle_transaction_timeout_ms: int = Field(default=60_000, ge=0)
    """A transaction idle for longer is ended by the server, so that a stuck process holds no locks. 0 means no limit."""


def _standard(name: str, *others: str) -> AliasChoices:
    """The variable of a setting of the storage, or one that all AWS tools know."""
    return AliasChoices(f"{PREFIX}STORAGE_{name.upper()}", *others)


class StorageSettings(BaseSettings):
    """The store of a bucket, if the files are in one. Credentials come from where all AWS tools take them (``AWS_...``)."""

    model_config = config("STORAGE_")

    endpoint: str | None = Field(default=None, validation_alias=_standard("endpoint", "AWS_ENDPOINT_URL_S3"))
    """Address of an S3-compatible store; None is Amazon's."""
    region: str = Field(default="us-east-1", validation_alias=_standard("region", "AWS_REGION", "AWS_DEFAULT_REGION"))
    """Region of the bucket; most other stores take any."""
    connect_seconds: float = Field(default=5.0, gt=0)
    """Longest wait for a connection."""
    read_seconds: float = Field(default=30.0, gt=0)
    """Longest silence of the store within a request."""
    attempts: int = Field(default=4, ge=1)
    """How often a request that fails is made in all, within some ten seconds if the store answers."""
    address_seconds: int | None = Field(default=None, ge=1, le=7 * 86400)
    """How long an address is valid at which a file can be downloaded from the store itself, where the API redirects to;
    None sends all files through the API."""


class FetchSettings(BaseSettings):
    """What may be fetched, and from where."""

    model_config = config("FETCH_")

    max_bytes: int = Field(default=8 * GIB, ge=1)
    """Most bytes fetched for one checkpoint or data set."""
    plain_http: bool = False
    """Whether ``http://`` references are taken; off, because anyone on the way could exchange a model."""
    private_hosts: Hosts = ()
    """Hosts that may be fetched from although their addresses are not public, separated by commas; all their ports are open."""
    ports: Ports = ()
    """Ports of public hosts that may be fetched from beside 443 and 80, separated by commas."""
    keep_free_bytes: int = Field(default=256 * MIB, ge=0)
    """Bytes that fetching leaves free on the disk: enough for what running jobs write meanwhile."""


class RateSettings(BaseSettings):
    """Limits on the number of requests."""

    model_config = config("RATE_")

    requests: int = Field(default=6000, ge=0)
    """Requests that a key may make in a window: a hundred a second, four times what the busiest key of the load benchmark
    makes. 0 means no limit."""
    refusals: int = Field(default=600, ge=0)
    """Requests without a valid key that an address may make in a window; enough for an office whose programs have all lost
    their keys. 0 means no limit."""
    window_seconds: int = Field(default=60, ge=1)
    """Length of the window in which requests are counted; a refused caller waits no longer than that."""
    timeout_seconds: float = Field(default=0.2, gt=0)
    """How long the broker may take to count a request; it takes a fifth of a millisecond."""
    pause_seconds: float = Field(default=5.0, ge=0)
    """How long requests pass uncounted after the broker did not answer, so that not each of them waits for it."""


class WebhookSettings(BaseSettings):
    """Where webhook messages may be sent, and how often they are retried."""

    model_config = config("WEBHOOK_")

    plain_http: bool = False
    """Whether webhooks may be sent to ``http://``; off, because anyone on the way could read and suppress them."""
    private_hosts: Hosts = ()
    """Hosts that webhooks may be sent to although their addresses are not public, separated by commas; all their ports are
    open."""
    ports: Ports = ()
    """Ports of public hosts that webhooks may be sent to beside 443 and 80, separated by commas."""
    timeout_seconds: float = Field(default=15.0, gt=0)
    """How long a receiver may take to answer, in all; the standard asks for 15 to 30 s."""
    retry_seconds: Pauses = (5, 300, 1800, 7200, 18_000, 36_000)
    """Pauses between the attempts to deliver a message, in seconds, separated by commas; after the last one it is dead. These
    bridge an outage of 17 hours."""
    overlap_hours: float = Field(default=24.0, ge=0)
    """How long the secret before the newest signs too, so that receivers can change it without a gap."""
    poll_seconds: float = Field(default=1.0, gt=0)
    """How often a worker looks for messages to deliver."""
    senders: int = Field(default=4, ge=1)
    """Messages that a worker delivers at a time. No two go to one address, so a receiver that hangs holds one of them."""


class RetainSettings(BaseSettings):
    """How long each kind of data is kept."""

    model_config = config("RETAIN_")

    artifact_days: Days | None = None
    """Days after its end for which a job keeps its files; None means forever."""
    job_days: Days | None = None
    """Days after its end for which a job is kept, with everything that belongs to it; None means forever."""
    upload_days: Days | None = None
    """Days for which an upload that no job names is kept; None means forever."""
    event_days: Days | None = None
    """Days after a job's end for which its events and webhook messages are kept; None means forever."""
    audit_days: Days | None = None
    """Days for which an entry of the audit log is kept; None means forever."""
    orphan_days: Days = 1.0
    """Days for which files without a row are kept after the last write to their folder: a restore may bring the rows back."""

"""The permissions and limits of fetching, independent of how they are configured."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from store.references import ParsedReference
from store.settings import Settings

_USUAL_PORTS = frozenset({80, 443})


@dataclass(frozen=True)
class FetchPolicy:
    """Limits and permissions of fetching."""

    file_roots: tuple[Path, ...] = ()
    """Directories under which ``file://`` may read; none by default."""
    private_hosts: frozenset[str] = frozenset()
    """Hosts that may be read although their addresses are not public, for example an internal file server."""
    ports: frozenset[int] = frozenset()
    """Ports of public hosts that may be read beside 443 and 80; other ports belong to services that are not web servers."""
    plain_http: bool = False
    """Whether ``http://`` is taken; off, because anyone on the way could exchange a model."""
    max_bytes: int = 8 << 30
    """Most bytes of a checkpoint or a data file; BERT-large in float32 takes 1.3 GiB."""
    text_bytes: int = 64 << 20
    """Most bytes of a configuration or tokenizer file; the largest public ones have half of it."""
    file_count: int = 1000
    """Most files of a checkpoint or members of an archive."""
    connect_seconds: float = 10.0
    """Longest wait for a connection."""
    read_seconds: float = 30.0
    """Longest silence while reading."""
    file_seconds: float = 1800.0
    """Longest time for one file, so that a source that drips does not hold a worker for ever."""
    job_seconds: float = 4 * 3600.0
    """Longest time for all files of a job."""
    slowest: float = 16 << 10
    """Fewest bytes a second, on average over ``pace_seconds``; a modem's speed, at which no model arrives in time."""
    pace_seconds: float = 60.0
    """How long a source may be slow: a minute bridges a busy server."""
    keep_free_bytes: int = 0
    """Bytes that fetching leaves free on the disk, for the trace, the database and the results of other jobs."""
    attempts: int = 4
    """How often a source that fails is tried."""
    backoff_seconds: float = 0.5
    """Pause before the second attempt; it doubles with each further one."""
    hub_endpoint: str = "https://huggingface.co"
    """The model hub, or a mirror of it."""
    hub_token: str | None = field(default=None, repr=False)
    """Sent to the hub's own host only, and only where the grants say so."""
    grants: frozenset[str] = frozenset()
    """Where credentials are used: ``s3://BUCKET``, ``hf://OWNER``; ``*`` for all. Elsewhere only what is public is read."""
    storage: tuple[str, str] | None = None
    """Bucket and prefix of the service's own files, which nobody reads by a reference: those of all teams are there."""

    def is_own(self, bucket: str, path: str) -> bool:
        """Whether a path of a bucket is among the service's own files."""
        if self.storage is None or bucket != self.storage[0]:
            return False
        prefix = self.storage[1]
        return not prefix or f"{path.strip('/')}/".startswith(f"{prefix}/")

    def uses_credentials(self, reference: ParsedReference) -> bool:
        """Whether credentials may be used for a reference to a store or the hub."""
        owner = reference.place.partition("/")[0]
        return not self.grants.isdisjoint({f"{reference.scheme}://{owner}", f"{reference.scheme}://*"})

    def allows_port(self, host: str, port: int) -> bool:
        """Whether connecting to this port of a host is allowed; hosts that the operator named may use every port."""
        return port in _USUAL_PORTS or port in self.ports or host.lower() in self.private_hosts


def with_private_host(policy: FetchPolicy, host: str) -> FetchPolicy:
    """The policy with one more host, chosen by the operator, whose address may be private."""
    return replace(policy, private_hosts=policy.private_hosts | {host.lower()})


def policy_of(settings: Settings, grants: Iterable[str] = ()) -> FetchPolicy:
    """The policy that the settings describe, for a team with these grants."""
    return FetchPolicy(
        file_roots=settings.file_roots,
        private_hosts=frozenset(settings.fetch.private_hosts),
        ports=frozenset(settings.fetch.ports),
        plain_http=settings.fetch.plain_http,
        keep_free_bytes=settings.fetch.keep_free_bytes,
        max_bytes=settings.fetch.max_bytes,
        hub_endpoint=settings.hub_endpoint,
        hub_token=settings.hub_token.get_secret_value() if settings.hub_token else None,
        grants=frozenset(grants),
        storage=settings.storage_bucket,
    )

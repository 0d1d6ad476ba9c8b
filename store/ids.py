"""Identifiers that sort by age: a short prefix for the type, and a version 7 UUID (RFC 9562, section 5.7)."""

import secrets
import time
from uuid import UUID

JOB_PREFIX = "job"
UPLOAD_PREFIX = "upl"
TEAM_PREFIX = "team"
MESSAGE_PREFIX = "msg"
WEBHOOK_SECRET_PREFIX = "whs"  # noqa: S105 - of ids

_RANDOM_BITS = 74  # 12 above the variant and 62 below it
_NANOSECONDS_PER_MILLISECOND = 1_000_000


def uuid7() -> UUID:
    """A UUID of 48 bits of Unix milliseconds and 74 random bits."""
    milliseconds = time.time_ns() // _NANOSECONDS_PER_MILLISECOND
    random = secrets.randbits(_RANDOM_BITS)
    high, low = random >> 62, random & (2**62 - 1)
    return UUID(int=milliseconds << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)


def new_id(prefix: str) -> str:
    """A new identifier, for example ``job_0199d1c2a4b37c5f8e21d3b4a5968778``."""
    return f"{prefix}_{uuid7().hex}"

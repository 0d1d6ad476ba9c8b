"""``provenance.json``: which service has made a result, from what, signed outside of the process that read untrusted files.

An in-toto statement (https://in-toto.io/Statement/v1) with a provenance of SLSA 1.0 in an envelope of DSSE 1.0, whose
signature is Ed25519. Its subjects are the files of the result by SHA-256, its dependencies the inputs.
"""

import base64
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from axformer.wire.base import Schema

PROVENANCE = "provenance.json"
PAYLOAD: Literal["application/vnd.in-toto+json"] = "application/vnd.in-toto+json"
_STATEMENT = "https://in-toto.io/Statement/v1"
_PREDICATE = "https://slsa.dev/provenance/v1"
_BUILD = "urn:axformer:job:1"


class EnvelopeSignature(Schema):
    """A signature, and a hint at its key."""

    keyid: str
    """SHA-256 of the 32 bytes of the public key."""
    sig: str
    """Base64."""


class Envelope(Schema):
    """What ``provenance.json`` holds."""

    payload: str
    """The statement as JSON, in base64."""
    payloadType: Literal["application/vnd.in-toto+json"] = PAYLOAD  # noqa: N815 - the name in DSSE
    signatures: Annotated[list[EnvelopeSignature], Field(min_length=1, max_length=16)]

    @property
    def statement(self) -> dict[str, Any]:
        """The statement, whose signature is not checked yet."""
        content: dict[str, Any] = json.loads(base64.b64decode(self.payload))
        return content


def signed_bytes(payload: bytes) -> bytes:
    """What a signature covers: the pre-authentication encoding of DSSE 1.0."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD), PAYLOAD.encode(), len(payload), payload)


def statement(
    files: Mapping[str, str], inputs: Mapping[str, Mapping[str, str]], made: Mapping[str, Any]
) -> dict[str, Any]:
    """The statement on a result.

    Args:
        files: SHA-256 of each file by name, ``run.json`` among them.
        inputs: of each input by field its ``uri``, without secrets, and its ``sha256``.
        made: ``job``, ``kind``, ``worker``, ``started``, ``finished``, ``axformer`` and ``commit``.
    """
    dependencies = [
        {"name": name, "uri": one["uri"], "digest": {"sha256": one["sha256"]}} for name, one in sorted(inputs.items())
    ]
    version = {"axformer": made["axformer"], "commit": made["commit"] or "unknown"}
    times = {"startedOn": made["started"], "finishedOn": made["finished"]}
    predicate = {
        "buildDefinition": {
            "buildType": _BUILD,
            "externalParameters": {"kind": made["kind"]},
            "resolvedDependencies": dependencies,
        },
        "runDetails": {
            "builder": {"id": f"urn:axformer:worker:{made['worker']}", "version": version},
            "metadata": {"invocationId": made["job"], **times},
        },
    }
    subjects = [{"name": name, "digest": {"sha256": sha256}} for name, sha256 in sorted(files.items())]
    return {"_type": _STATEMENT, "subject": subjects, "predicateType": _PREDICATE, "predicate": predicate}

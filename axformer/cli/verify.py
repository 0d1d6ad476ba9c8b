"""``axformer verify``: whether a result is what a service has made and signed."""

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import httpx2
import typer
from pydantic import ValidationError

from axformer.cli.display import count
from axformer.cli.failing import failing
from axformer.cli.remote import JsonOption, output, print_plain
from axformer.client.downloads import digest
from axformer.errors import ArtifactError, InputError
from axformer.wire.base import read_answer
from axformer.wire.health import HealthRead
from axformer.wire.provenance import PROVENANCE, Envelope, signed_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_SECONDS = 10.0
_SHOWN = 5
"""Most files that a message names."""


def verify(
    result: Annotated[Path, typer.Argument(help="Directory of a downloaded result.")],
    key: Annotated[str, typer.Option(help="The service's public key: a file in PEM, or the address of the service.")],
    as_json: JsonOption = False,
) -> None:
    """Check who has made a result, from what, and that no file of it has changed; exit code 1 if not."""
    with failing():
        envelope = _read(result)
        _check_signature(envelope, _public(key))
        told = envelope.statement
        compared = _compare(result, {one["name"]: one["digest"]["sha256"] for one in told["subject"]})
    made = told["predicate"]["runDetails"]
    job, builder = made["metadata"]["invocationId"], made["builder"]
    inputs = told["predicate"]["buildDefinition"]["resolvedDependencies"]
    if as_json:
        print_plain({"job": job, "files": compared, "inputs": inputs, "builder": builder})
        return
    console = output()
    console.print(f"Signed: {count(compared, 'file')} of job {job}, unchanged.", soft_wrap=True)
    version, commit = builder["version"]["axformer"], builder["version"]["commit"]
    console.print(f"Made by {builder['id']} with axformer {version} ({commit}) from:", soft_wrap=True)
    for one in inputs:
        console.print(f"  {one['name']}: {one['uri']}, SHA-256 {one['digest']['sha256']}", soft_wrap=True)


def _read(result: Path) -> Envelope:
    try:
        return Envelope.model_validate_json((result / PROVENANCE).read_bytes())
    except FileNotFoundError:
        raise InputError(f"'{result}' has no {PROVENANCE}; only a service's results are signed, download it") from None
    except ValidationError:
        raise ArtifactError(f"'{result / PROVENANCE}' is no signed statement") from None


def _public(key: str) -> "Ed25519PublicKey":
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        raise InputError("signatures need a package; install it: pip install 'axformer[verify]'") from None
    content = _of_service(key) if key.startswith(("http://", "https://")) else Path(key).read_bytes()
    try:
        public = load_pem_public_key(content)
    except ValueError:
        raise InputError(f"'{key}' gives no public key in PEM") from None
    if not isinstance(public, Ed25519PublicKey):
        raise InputError(f"'{key}' gives a key of another kind than Ed25519")
    return public


def _of_service(address: str) -> bytes:
    try:
        answer = httpx2.get(f"{address.rstrip('/')}/healthz", timeout=_SECONDS).raise_for_status()
        return read_answer(HealthRead, answer.content).result_key.encode()
    except (httpx2.HTTPError, ValidationError) as error:
        raise InputError(f"'{address}' gives no key: {type(error).__name__}") from None


def _check_signature(envelope: Envelope, public: "Ed25519PublicKey") -> None:
    """Check that one of the signatures is of this key.

    Raises:
        ArtifactError: none is.
    """
    from cryptography.exceptions import InvalidSignature

    for signature in envelope.signatures:
        try:
            public.verify(
                base64.b64decode(signature.sig, validate=True),
                signed_bytes(base64.b64decode(envelope.payload, validate=True)),
            )
        except (InvalidSignature, ValueError):
            continue
        return
    raise ArtifactError("the statement is not signed with this key, or was changed")


def _compare(result: Path, signed: dict[str, str]) -> int:
    """Compare the files of a directory with the signed ones, and count them. Some may be missing; none may be added.

    Raises:
        ArtifactError: a file was changed or added, or there is none.
    """
    found = {path.relative_to(result).as_posix(): path for path in result.rglob("*") if not path.is_dir()}
    found.pop(PROVENANCE)
    added = sorted(found.keys() - signed.keys())
    changed = sorted(name for name in found.keys() & signed.keys() if digest(found[name]) != signed[name])
    if added or changed or not found:
        wrong = [*(f"'{name}' was changed" for name in changed), *(f"'{name}' is not signed" for name in added)]
        raise ArtifactError("; ".join(wrong[:_SHOWN]) or f"'{result}' has no signed file")
    return len(found)

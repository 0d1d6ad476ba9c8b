"""The address of the service and its key: from arguments, the environment, ``axformer login``, or a checkout.

A key is sent only to the address that it belongs to: for an address without a key, a stored key is used only if it was stored
for the same address.
"""

import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import typer

from axformer.errors import InputError

URL_VARIABLE = "AXFORMER_URL"
KEY_VARIABLE = "AXFORMER_API_KEY"
LOGIN_FILE = "login.json"
SERVE_FILE = Path("var") / "serve.json"
"""What ``make serve`` writes into the checkout that it runs in."""
_PRIVATE_FILE = 0o600
_PRIVATE_DIRECTORY = 0o700
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class AddressError(InputError):
    """The address of the service or the key for it is missing."""

    code = "no_address"


@dataclass(frozen=True)
class Address:
    """The address of the service, and a key."""

    url: str
    """Without a trailing slash."""
    api_key: str


def find_address(url: str | None = None, api_key: str | None = None) -> Address:
    """The address and key of the first source that has them: the arguments, the environment, the login, the checkout.

    Raises:
        AddressError: no source has them, or they are not valid.
    """
    url = url or os.environ.get(URL_VARIABLE) or None
    api_key = api_key or os.environ.get(KEY_VARIABLE) or None
    api_key = None if api_key is None else _checked_key(api_key)
    wanted = None if url is None else _checked(url)
    if wanted is not None and api_key is not None:
        return Address(wanted, api_key)
    for kept in _kept():
        if wanted in (None, kept.url):
            return Address(kept.url, api_key or kept.api_key)
    if wanted is not None:
        raise AddressError(
            f"there is no key for {wanted}; give one in {KEY_VARIABLE}, or run 'axformer login {wanted}'"
        )
    raise AddressError(
        f"it is not known where the service is; give {URL_VARIABLE} and {KEY_VARIABLE}, or run 'axformer login URL'"
    )


def store_address(address: Address) -> Path:
    """Store an address and its key in a file that only its owner may read, replacing earlier ones.

    Returns:
        The file.
    """
    path = login_file()
    path.parent.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    incoming = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(incoming, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE_FILE), "w") as file:
            json.dump(asdict(address), file)
        incoming.replace(path)
    finally:
        incoming.unlink(missing_ok=True)
    return path


def login_file() -> Path:
    """The file in which ``axformer login`` stores the address."""
    return Path(typer.get_app_dir("axformer")) / LOGIN_FILE


def make_address(url: str, api_key: str) -> Address:
    """Make an address from user input.

    Raises:
        AddressError: the address is not valid, or the key is none.
    """
    if not api_key.strip():
        raise AddressError("the key is empty; an administrator of your team makes keys")
    return Address(_checked(url), _checked_key(api_key))


def _kept() -> Iterator[Address]:
    for path in (login_file(), SERVE_FILE):
        found = _read(path)
        if found is not None:
            yield found


def _read(path: Path) -> Address | None:
    """Read a stored address; None if the file does not exist. One that others may read or may have written is refused."""
    try:
        status = path.stat()
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AddressError(f"'{path}' cannot be read: {error.strerror}") from None
    if os.name == "posix" and (status.st_mode & _OTHERS or status.st_uid != os.geteuid()):
        raise AddressError(f"'{path}' holds a key and is not yours alone; own it and run: chmod 600 '{path}'")
    try:
        content: dict[str, Any] = json.loads(text)
        return Address(_checked(content["url"]), content["api_key"])
    except (ValueError, KeyError, TypeError):
        raise AddressError(f"'{path}' is damaged; run 'axformer login URL' again, or delete it") from None


def _checked_key(text: str) -> str:
    """The key, without spaces around it. It is a secret, so no message repeats it."""
    key = text.strip()
    if re.fullmatch("[!-~]+", key) is None:
        raise AddressError(
            "the key holds what no key holds, such as a space or a letter that is not ASCII; copy it again"
        )
    return key


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
        is_address = is_address and not (parts.query or parts.fragment) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise AddressError(f"'{url}' is not an address of a service; write for example https://axformer.example.com")
    return url.rstrip("/").removesuffix("/v1")

"""Where the address and the key come from, and that a key goes nowhere else."""

import json
import os
import stat
from pathlib import Path

import pytest

from axformer.client import Address, AddressError
from axformer.client.address import SERVE_FILE, find_address, login_file, make_address, store_address

LOGIN = Address("https://login.example", "axk_login")


def checkout(where: Path, mode: int = 0o600) -> None:
    path = where / SERVE_FILE
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"url": "http://127.0.0.1:8000", "api_key": "axk_serve", "database_url": "x"}))
    path.chmod(mode)


def test_arguments_come_before_the_environment_the_login_and_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AddressError, match=r"AXFORMER_URL.*axformer login URL"):
        find_address()
    checkout(tmp_path)
    assert find_address() == Address("http://127.0.0.1:8000", "axk_serve")
    store_address(LOGIN)
    assert find_address() == LOGIN
    monkeypatch.setenv("AXFORMER_API_KEY", "axk_env")
    assert find_address() == Address(LOGIN.url, "axk_env")
    monkeypatch.setenv("AXFORMER_URL", "https://env.example/v1/")
    assert find_address() == Address("https://env.example", "axk_env")
    assert find_address("https://given.example", "axk_given") == Address("https://given.example", "axk_given")
    assert find_address(api_key="axk_given") == Address("https://env.example", "axk_given")


def test_a_stored_key_goes_to_its_own_address_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkout(tmp_path)
    store_address(LOGIN)
    assert find_address("https://login.example/") == LOGIN
    assert find_address("http://127.0.0.1:8000") == Address("http://127.0.0.1:8000", "axk_serve")
    with pytest.raises(AddressError, match=r"no key for https://other.example; give one in AXFORMER_API_KEY"):
        find_address("https://other.example")


def test_what_login_keeps_is_for_its_owner_alone_and_replaced_whole() -> None:
    path = store_address(LOGIN)
    store_address(Address("https://second.example", "axk_second"))
    assert find_address() == Address("https://second.example", "axk_second")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_a_file_that_others_may_read_or_that_is_damaged_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store_address(LOGIN).chmod(0o644)
    with pytest.raises(AddressError, match="is not yours alone"):
        find_address()
    login_file().chmod(0o600)
    login_file().write_text('{"url": "https://login.example"}')
    with pytest.raises(AddressError, match="is damaged"):
        find_address()
    login_file().unlink()
    checkout(tmp_path, 0o640)
    with pytest.raises(AddressError, match="chmod 600"):
        find_address()


def test_a_checkout_of_another_user_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    monkeypatch.chdir(tmp_path)
    checkout(tmp_path)
    os.chown(tmp_path / SERVE_FILE, 12345, -1)
    with pytest.raises(AddressError, match="is not yours alone"):
        find_address()


@pytest.mark.parametrize(
    "url",
    ["", "example.com", "ftp://x", "https://", "https://user:pw@x.example", "https://x.example?a=1", "http://x:y"],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(AddressError, match="not an address of a service"):
        make_address(url, "axk_x")
    with pytest.raises(AddressError, match="key is empty"):
        make_address("https://x.example", " ")

"""How fast a result goes up and down: ``python -m benchmarks.storage [--megabytes 1000]``.

By turns in one run: a plain copy on this machine's disk, a storage in a directory, a storage in a bucket, and one plain request
each way to the same store without hashing, parts or checks. The store is moto's server on loopback, unless one is named; it
shares the machine.
"""

import argparse
import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import botocore.session

from store.setting_groups import StorageSettings
from store.storage.bucket import Bucket
from store.storage.object_storage import ObjectStorage
from store.storage.storage import READ_CHUNK, LocalStorage, Storage, job_folder
from store.system.processes import LOOPBACK, free_port

_MEGABYTE = 10**6
_FOLDER = job_folder("job_benchmark")
_BUCKET = "benchmark"
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
_READY_SECONDS = 60.0

Act = Callable[[], object]


@contextmanager
def moto_server() -> Iterator[str]:
    """The address of a store on this machine with one bucket."""
    os.environ |= _CREDENTIALS
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(port)], stderr=subprocess.DEVNULL
    )
    try:
        address, deadline = f"http://{LOOPBACK}:{port}", time.monotonic() + _READY_SECONDS
        while not _answers(port):
            if time.monotonic() > deadline or process.poll() is not None:
                raise RuntimeError("moto's server does not start")
            time.sleep(0.1)
        _client(address).create_bucket(Bucket=_BUCKET)
        yield address
    finally:
        process.kill()
        process.wait()


def _client(address: str) -> Any:
    return botocore.session.get_session().create_client("s3", endpoint_url=address, region_name="us-east-1")


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1):
            return True
    except OSError:
        return False


def acts(source: Path, place: Path, storages: dict[str, Storage], address: str) -> dict[str, tuple[Act, Act]]:
    """For each way what takes the file up, and what brings it down."""
    there, back = place / "there", place / "back"
    ways: dict[str, tuple[Act, Act]] = {
        "plain copy": (lambda: _synced_copy(source, there), lambda: shutil.copyfile(there, back)),
        "one plain request": (lambda: _request("PUT", address, source), lambda: _request("GET", address, back)),
    }
    for name, storage in storages.items():
        ways[name] = (lambda storage=storage: _up(storage, source), lambda storage=storage: _down(storage, back))  # type: ignore[misc]
    return ways


def _synced_copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    with target.open("rb") as file:
        os.fsync(file.fileno())


def _up(storage: Storage, source: Path) -> None:
    with source.open("rb") as file:
        storage.put(_FOLDER, iter(lambda: file.read(READ_CHUNK), b""))


def _down(storage: Storage, target: Path) -> None:
    (sha256,) = storage.contents(_FOLDER, older_than=-3600)
    with target.open("wb") as file:
        file.writelines(storage.read(_FOLDER, sha256))


def _request(method: str, address: str, path: Path) -> None:
    signed = _client(address).generate_presigned_url(f"{method.lower()}_object", {"Bucket": _BUCKET, "Key": "plain"})
    with closing(http.client.HTTPConnection(urlsplit(address).netloc)) as connection:
        if method == "PUT":
            with path.open("rb") as file:
                connection.request(method, signed, file, {"Content-Length": str(path.stat().st_size)})
        else:
            connection.request(method, signed)
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            raise RuntimeError(f"{method} is answered with {answer.status}")
        with path.open("wb") if method == "GET" else Path(os.devnull).open("wb") as target:
            shutil.copyfileobj(answer, target, READ_CHUNK)


def _seconds(act: Act) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def measure(ways: dict[str, tuple[Act, Act]], rounds: int) -> dict[str, tuple[float, float]]:
    """Median seconds up and down of each way, which take turns."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (up, down) in ways.items():
            taken[name].append((_seconds(up), _seconds(down)))
    return {name: (median(up for up, _ in each), median(down for _, down in each)) for name, each in taken.items()}


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.storage")
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="axformer-storage-") as made, moto_server() as address:
        place = Path(made)
        source = place / "result"
        with source.open("wb") as file:
            for _ in range(given.megabytes):
                file.write(os.urandom(_MEGABYTE))
        bucket = Bucket(_BUCKET, StorageSettings(endpoint=address))
        storages: dict[str, Storage] = {
            "storage in a directory": LocalStorage(place / "storage"),
            "storage in a bucket": ObjectStorage(bucket, "files", place / "spool"),
        }
        measured = measure(acts(source, place, storages, address), given.rounds)
    plain = measured["plain copy"]
    print(
        f"{given.megabytes} MB, median of {given.rounds}\n\n| | up s | down s | up, times a copy | down, times a copy |"
    )
    print("|---|---|---|---|---|")
    for name, (up, down) in measured.items():
        print(f"| {name} | {up:.2f} | {down:.2f} | {up / plain[0]:.1f} | {down / plain[1]:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

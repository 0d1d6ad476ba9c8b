"""Pictures of the service's pages for the documents, of the demo's real jobs: ``python -m benchmarks.pictures``.

Needs the Chromium of the system and the jobs of ``make demo``, which stay in ``var/``. Starts the service if none runs here.
"""

import argparse
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axformer.client import Client, Job
from benchmarks.demo_service import JOBS, running_stack

TARGET = Path("docs/images")
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_DESKTOP, _PHONE = {"width": 1180, "height": 900}, {"width": 390, "height": 844}


class NothingToShowError(Exception):
    """There is no browser, or no finished job of the demo."""


@dataclass(frozen=True)
class Picture:
    """One picture."""

    name: str
    path: str
    scheme: str = "light"
    height: int = 900
    """Of the picture; what is below is left out."""
    top: str = "body"
    """CSS selector of what the picture begins with."""


def pictures(first: Job, second: Job) -> list[Picture]:
    """The pictures, of two finished jobs of one checkpoint."""
    return [
        Picture("board.png", "/", height=820),
        Picture("job.png", f"/jobs/{second.id}", height=1000),
        Picture("job-dark.png", f"/jobs/{first.id}", "dark", 900, "#chart"),
        Picture("trace.png", f"/jobs/{first.id}/trace", height=700),
        Picture("path.png", f"/jobs/{second.id}/path", height=900),
        Picture("compare.png", f"/compare?job={first.id}&job={second.id}", height=900),
        Picture("new.png", "/new", height=900),
    ]


def finished_jobs(client: Client) -> list[Job]:
    """The demo's latest finished job for each of its goals.

    Raises:
        NothingToShowError: one is missing.
    """
    found = []
    for wanted in JOBS:
        job = next((one for one in client.jobs(states=["succeeded"]) if one.name == f"reviews {wanted.goal}"), None)
        if job is None:
            raise NothingToShowError(f"there is no finished job 'reviews {wanted.goal}'; run make demo first")
        found.append(job)
    return found


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = next((found for name in _NAMES if (found := shutil.which(name))), None)
    if path is None:
        raise NothingToShowError(f"there is no browser on this machine: none of {', '.join(_NAMES)}")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


def take(url: str, key: str, shown: list[Picture], phone: str, target: Path, say: Callable[[str], None]) -> None:
    """Sign in and take every picture.

    Args:
        url: the service's address.
        key: a key of the team.
        shown: the pictures of a desktop.
        phone: the path of the page that is shown on a phone.
        target: the directory for the files.
        say: told of every file.
    """
    target.mkdir(parents=True, exist_ok=True)
    with _browser() as browser:
        for picture in shown:
            _shoot(browser, url, key, picture, {"viewport": _DESKTOP | {"height": picture.height}}, target)
            say(picture.name)
        on_phone = {"viewport": _PHONE, "device_scale_factor": 2, "is_mobile": True}
        _shoot(browser, url, key, Picture("phone.png", phone, "dark", _PHONE["height"]), on_phone, target)
        say("phone.png")


def _shoot(browser: Any, url: str, key: str, picture: Picture, options: dict[str, Any], target: Path) -> None:
    context = browser.new_context(base_url=url, color_scheme=picture.scheme, **options)
    page = context.new_page()
    page.goto("/sign-in")
    page.locator("form input[type=password]").fill(key)
    page.locator("form input[type=password]").press("Enter")
    page.wait_for_url(f"{url}/")
    page.goto(picture.path)
    page.wait_for_timeout(
        1500
    )  # scripts draw at the width of the screen, and hold a stream open, so nothing tells when
    page.locator(picture.top).first.evaluate("part => part.scrollIntoView()")
    page.screenshot(path=target / picture.name)
    context.close()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=TARGET)
    target = parser.parse_args().output
    with running_stack() as address, Client(address.url, address.api_key) as client:
        first, second = finished_jobs(client)
        shown = pictures(first, second)
        take(address.url, address.api_key, shown, f"/jobs/{second.id}", target, print)


if __name__ == "__main__":
    main()

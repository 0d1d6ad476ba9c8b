"""A browser that drives the real service: the API behind a real server, on a real database, and a real worker."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from api.main import create_app
from axformer.wire.scopes import Scope
from store.repositories.keys import create_key
from store.repositories.teams import create_team
from store.session import Sessions, session_scope
from store.settings import Settings
from tests.serving import serving

PATIENCE_MS = 120_000
"""What a loaded machine may take for one step."""
START_MS = 180_000
_ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
_NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium, with a profile of its own.

    For a module and no longer: while it runs, its event loop does, and no other test could run one in this process.
    """
    path = next((found for name in _NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"there is no browser on this machine: none of {', '.join(_NAMES)}")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        try:
            started = driver.chromium.launch(executable_path=path, args=_ARGUMENTS, timeout=START_MS)
        except playwright.Error as error:
            pytest.skip(f"{path} does not start here: {str(error).splitlines()[0]}")
        yield started
        started.close()


@dataclass
class Team:
    """A team of the service, with a key for admins."""

    id: str
    key: str


@pytest.fixture
def team(sessions: Sessions) -> Team:
    with session_scope(sessions) as session:
        made = create_team(session, "crew")
        return Team(made.id, create_key(session, made.id, "browser", Scope.ADMIN).text)


@dataclass
class Tab:
    """A page of the browser, and what it complained of."""

    page: Any
    complaints: list[str] = field(default_factory=list)

    def sign_in(self, key: str) -> None:
        """Send a key in the form."""
        self.page.goto("/sign-in")
        self.page.get_by_label("Key of your team").fill(key)
        self.page.get_by_role("button", name="Sign in").click()


Open = Callable[..., Tab]


@pytest.fixture
def open_tab(browser: Any, settings: Settings, tmp_path: Path) -> Iterator[Open]:
    """Opens tabs on the running service, which are closed at the end."""
    contexts: list[Any] = []
    tabs: list[Tab] = []
    with serving(create_app(settings)) as url:

        def make(**options: Any) -> Tab:
            context = browser.new_context(base_url=url, **{"viewport": {"width": 1280, "height": 900}} | options)
            context.set_default_timeout(PATIENCE_MS)
            contexts.append(context)
            tab = Tab(context.new_page())
            tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
            tab.page.on(
                "console",
                lambda said: tab.complaints.append(said.text) if "Content Security Policy" in said.text else None,
            )
            tabs.append(tab)
            return tab

        try:
            yield make
        finally:
            for context in contexts:
                context.close()
    assert [complaint for tab in tabs for complaint in tab.complaints] == []

"""How quick the pages are: ``python -m benchmarks.load.pages [--requests 50]``.

On the queue that ``benchmarks.load`` puts its load on, 2,000 queued jobs of 20 teams and a running one with 50,000 trials, each
page is asked for one after another by one signed-in visitor. What comes along with a page, as style sheets, is kept by browsers
and not counted.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import httpx2
import numpy as np
from pydantic import SecretStr

from benchmarks.load.__main__ import serving
from benchmarks.load.queue import fill_queue
from store.repositories.jobs import list_jobs
from store.session import make_engine, make_sessions, session_scope
from store.settings import Settings
from store.tables.jobs import Job

_WARM = 5
"""Requests before those that count, in which templates are compiled and plans are made."""
_PERCENTILES = (50, 95, 100)
_HTML = {"Accept": "text/html"}


def signed_in(client: httpx2.Client, url: str, key: str) -> None:
    """Sign in as a browser does."""
    form = client.get("/sign-in").text
    token = form.partition('name="form_token" value="')[2].partition('"')[0]
    answer = client.post("/sign-in", data={"form_token": token, "key": key}, headers={"Origin": url})
    if answer.status_code != 303:
        raise RuntimeError(f"signing in was answered with {answer.status_code}")


def measured(client: httpx2.Client, path: str, requests: int) -> tuple[list[float], int]:
    """Milliseconds of each request, and bytes of the last answer."""
    times, size = [], 0
    for number in range(_WARM + requests):
        begun = time.perf_counter()
        answer = client.get(path, headers=_HTML)
        if number >= _WARM:
            times.append(1000 * (time.perf_counter() - begun))
        if answer.status_code != 200:
            raise RuntimeError(f"{path} was answered with {answer.status_code}")
        size = len(answer.content)
    return times, size


def paths_of(long: str, others: list[str]) -> dict[str, str]:
    """The pages by what they are."""
    compared = "&".join(f"job={one}" for one in (long, *others[:5]))
    return {
        "board, 2,000 jobs": "/",
        "board, filtered by text": "/?text=job%2077",
        "job, 50,000 trials": f"/jobs/{long}",
        "its chart": f"/jobs/{long}/chart",
        "its map": f"/jobs/{long}/map",
        "trace, 50,000 trials": f"/jobs/{long}/trace",
        "trace, sorted by loss": f"/jobs/{long}/trace?sort=loss&order=down",
        "trace, filtered by element": f"/jobs/{long}/trace?element=layer.3.",
        "trace, its last page": f"/jobs/{long}/trace?page=500",
        "six jobs compared": f"/compare?{compared}",
        "new job": "/new",
    }


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load.pages")
    parser.add_argument("--requests", type=int, default=50, help="of each page")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="axformer-pages-") as made, serving(Path(made), 1) as (url, environment):
        engine = make_engine(Settings(database_url=SecretStr(environment["DATABASE_URL"])))
        sessions = make_sessions(engine)
        long, key = fill_queue(sessions).long
        with session_scope(sessions) as session:
            team_id = session.get_one(Job, long).team_id
            others = [job.id for job in list_jobs(session, team_id, limit=5).items]
        print("| page | ms p50 | p95 | most | kB |\n|---|---|---|---|---|")
        with httpx2.Client(base_url=url, timeout=60) as client:
            signed_in(client, url, key)
            for name, path in paths_of(long, others).items():
                times, size = measured(client, path, given.requests)
                figures = " | ".join(f"{value:.0f}" for value in np.percentile(times, _PERCENTILES))
                print(f"| {name} | {figures} | {size / 1000:.0f} |", flush=True)
        engine.dispose()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Known vulnerabilities of what the images install, by pip-audit: ``python -m tests.advisories [--osv URL]``.

The exit code is 0 if all packages were looked up and none is known to be vulnerable, 1 if one is, and 2 if the database of
advisories did not answer for all. pip-audit itself passes over packages that its database does not know.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILES = tuple(ROOT / image / "requirements.txt" for image in ("api", "worker"))


class NoAnswerError(Exception):
    """The database of advisories did not answer."""


def looked_up(files: Sequence[Path], osv: str | None) -> list[dict[str, Any]]:
    """What pip-audit says of each package in hashed requirement files."""
    command = [str(Path(sys.executable).with_name("pip-audit")), "--disable-pip", "--format", "json"]
    command += ["--progress-spinner", "off", *(word for file in files for word in ("--requirement", str(file)))]
    command += [] if osv is None else ["--vulnerability-service", "osv", "--osv-url", osv]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found: list[dict[str, Any]] = json.loads(ran.stdout)["dependencies"]
    except (ValueError, LookupError):
        raise NoAnswerError((ran.stderr.strip().splitlines() or ["pip-audit says nothing"])[-1]) from None
    return found


def told(found: Sequence[dict[str, Any]]) -> tuple[int, list[str]]:
    """The exit code, and a line for each finding."""
    lines = [
        f"{one['name']} {one['version']}: {bug['id']}, mended in {', '.join(bug['fix_versions']) or 'no version yet'}"
        for one in found
        for bug in one.get("vulns", ())
    ]
    if lines:
        return 1, lines
    if missed := [one for one in found if "skip_reason" in one]:
        return 2, [f"{len(missed)} of {len(found)} packages were not looked up: {missed[0]['skip_reason']}"]
    return 0, [f"{len(found)} packages, no known vulnerability"]


def main(arguments: Sequence[str] | None = None, files: Sequence[Path] = FILES) -> int:
    """Print what is found."""
    parser = argparse.ArgumentParser(prog="python -m tests.advisories")
    parser.add_argument("--osv", metavar="URL", help="ask a mirror of OSV, as in http://127.0.0.1:8080/v1/query")
    try:
        code, lines = told(looked_up(files, parser.parse_args(arguments).osv))
    except NoAnswerError as error:
        code, lines = 2, [f"no database of advisories answers, so nothing was audited: {error}"]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return code


if __name__ == "__main__":
    sys.exit(main())

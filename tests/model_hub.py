"""A model hub on this machine, as far as a commit needs it."""

import base64
import json
from collections.abc import Iterator
from typing import Any

from tests.loopback import Answer, Loopback

TOKEN = "hf_canary"


class Hub:
    """The routes of a hub that a commit needs; those with another token are refused."""

    def __init__(self) -> None:
        self.server: Loopback | None = None
        self.large: dict[str, bytes] = {}
        self.commits: list[dict[str, bytes]] = []
        self.created: list[dict[str, Any]] = []
        self.broken: dict[str, int] = {}
        """Paths, by their beginning, that answer with a status."""

    def __call__(self, method: str, target: str, headers: dict[str, str]) -> Answer:
        assert self.server is not None
        path, body = target.partition("?")[0], self.server.bodies[-1]
        for beginning, status in self.broken.items():
            if path.startswith(beginning):
                return Answer(status)
        if path.startswith("/lfs/"):
            self.large[path.removeprefix("/lfs/")] = body
            return Answer(200)
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return Answer(401)
        return self._told(path, body)

    def _told(self, path: str, body: bytes) -> Answer:
        assert self.server is not None
        if path == "/api/repos/create":
            self.created.append(json.loads(body))
            return said({"url": f"{self.server.url}/org/name"})
        if path == "/api/validate-yaml":
            return said({"errors": [], "warnings": []})
        if "/preupload/" in path:
            asked = [file["path"] for file in json.loads(body)["files"]]
            modes = {path: "lfs" if path.endswith(".safetensors") else "regular" for path in asked}
            return said(
                {"files": [{"path": name, "uploadMode": mode, "shouldIgnore": False} for name, mode in modes.items()]}
            )
        if path.endswith("/objects/batch"):
            objects = [
                one | {"actions": {"upload": {"href": f"{self.server.url}/lfs/{one['oid']}"}}}
                for one in json.loads(body)["objects"]
            ]
            return said({"transfer": "basic", "objects": objects})
        if path == "/api/models/org/name":
            return Answer(404)  # asked for where it may not be made; it is not there
        assert "/commit/" in path
        self.commits.append(dict(self._committed(body)))
        return said({"commitUrl": f"{self.server.url}/org/name/commit/{'c' * 40}", "commitOid": "c" * 40})

    def _committed(self, body: bytes) -> Iterator[tuple[str, bytes]]:
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                yield value["path"], base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                yield value["path"], self.large[value["oid"]]


def said(body: dict[str, Any]) -> Answer:
    return Answer(200, {"Content-Type": "application/json"}, json.dumps(body).encode())

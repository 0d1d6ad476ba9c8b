"""A program behind the restrictions that does what a test says: each line is Python as a JSON string, and what that sets as
``answer`` is sent back, or the name of its error."""

import json
from typing import Any

from worker.sandbox.lines import PipeEnd


def main(reads: int, writes: int) -> None:
    lines = PipeEnd(reads, writes)
    scope: dict[str, Any] = {}
    while True:
        try:
            code = json.loads(lines.receive())
        except EOFError:
            return
        try:
            exec(code, scope)
            answer = scope.pop("answer", None)
        except Exception as error:  # noqa: BLE001 - whatever comes is the answer
            answer = type(error).__name__
        lines.send(json.dumps(answer).encode())

"""Serve an ONNX form over HTTP. It needs what serve_onnx.py needs, which lies beside it.

python serve_http.py smaller/hub 8080
curl localhost:8080 -d '{"texts": ["a text", "another"]}'
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from serve_onnx import Model

MOST_BYTES = 1_000_000


class Handler(BaseHTTPRequestHandler):
    """Answers POST with the label and the probabilities of each text, or its vector. Texts of one request are one batch."""

    model: Model

    def do_POST(self) -> None:
        """Answer one request."""
        size = int(self.headers.get("Content-Length", 0))
        if size > MOST_BYTES:
            return self.answer(413, {"error": f"more than {MOST_BYTES:,} bytes"})
        try:
            texts = json.loads(self.rfile.read(size))["texts"]
        except (ValueError, KeyError, TypeError):
            texts = None
        if not texts or not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            return self.answer(400, {"error": 'give {"texts": ["a text", ...]}'})
        found = self.model.outputs(texts)
        if self.model.is_embedder:
            return self.answer(200, {"answers": [{"embedding": vector.tolist()} for vector in found]})
        shares = np.exp(found - found.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        labels = self.model.labels
        rows = [{labels[str(place)]: float(share) for place, share in enumerate(row)} for row in shares]
        return self.answer(200, {"answers": [{"label": max(row, key=row.get), "probabilities": row} for row in rows]})

    def answer(self, status: int, content: dict) -> None:
        """Send JSON."""
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    Handler.model = Model(Path(sys.argv[1]))
    server = ThreadingHTTPServer(("", int(sys.argv[2])), Handler)
    print(f"serving on port {server.server_port}", flush=True)  # noqa: T201
    server.serve_forever()

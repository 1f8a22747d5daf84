"""A hub for tests: the few requests of the hub's API that fetching a model makes, for models made on the spot.

`python tests/model/hub_server.py PORT OWNER/NAME=DIR ...` serves folders until it is killed.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

REVISION = "5fd1a4b0" * 5
LARGE = 1_000
"""Bytes from which a file lies elsewhere, with its digest, as the hub's large files do."""


@dataclass
class Hub:
    """What the hub holds, how it behaves, and what it was asked."""

    models: dict[str, dict[str, bytes]] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    token: str = "hf_of_the_test"
    stated: dict[str, int] = field(default_factory=dict)
    """Sizes that are stated in place of the true ones, by file."""
    cut_after: int | None = None
    """Bytes of a large file after which the connection stands still."""
    spoilt: bool = False
    """Large files come with another last byte."""
    revision: str = REVISION
    parameters: int | None = None
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path and range of each request."""
    tokens: list[tuple[str, str]] = field(default_factory=list)
    """Path and token of each request."""
    url: str = ""

    def ranges(self, name: str) -> list[str]:
        """Of the requests for a file's content, in their order."""
        return [range_ for method, path, range_ in self.asked if method == "GET" and path.endswith(f"/{name}")]


class Handler(BaseHTTPRequestHandler):
    """The hub's answers."""

    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Says nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        token = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        self.hub.asked.append((self.command, path, self.headers.get("range") or ""))
        self.hub.tokens.append((path, token))
        parts = path.strip("/").split("/")
        if parts[0] == "cdn":
            return self.content("/".join(parts[1:3]), parts[-1], large=True)
        name = "/".join(parts[2:4] if parts[0] == "api" else parts[:2])
        if name not in self.hub.models:
            return self.refuse(401 if not token else 404, "RepoNotFound")
        if parts[0] == "api":
            return self.info(name, parts[-1])
        if name in self.hub.gated and token != self.hub.token:
            return self.refuse(401 if not token else 403, "GatedRepo")
        return self.file(name, parts[-1])

    def info(self, name: str, revision: str) -> None:
        if revision not in ("main", self.hub.revision):
            return self.refuse(404, "RevisionNotFound")
        siblings = []
        for file, content in self.hub.models[name].items():
            large = {"lfs": {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 1}}
            size = self.hub.stated.get(file, len(content))
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            known = {"rfilename": file, "size": size, "blobId": blob}
            siblings.append({**known, **(large if len(content) >= LARGE else {})})
        body: dict[str, Any] = {"id": name, "sha": self.hub.revision, "siblings": siblings, "tags": []}
        if self.hub.parameters is not None:
            body["safetensors"] = {"parameters": {"F32": self.hub.parameters}, "total": self.hub.parameters}
        self.answer(200, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def file(self, name: str, file: str) -> None:
        content = self.hub.models[name].get(file)
        if content is None:
            return self.refuse(404, "EntryNotFound")
        if len(content) < LARGE:
            return self.content(name, file, large=False)
        digest = hashlib.sha256(content).hexdigest()
        linked = {
            "X-Linked-Etag": f'"{digest}"',
            "X-Linked-Size": str(len(content)),
            "X-Repo-Commit": self.hub.revision,
        }
        # Another name of this machine, as the hub's large files lie at another host.
        elsewhere = self.hub.url.replace("127.0.0.1", "localhost")
        return self.answer(302, b"", {**linked, "Location": f"{elsewhere}/cdn/{name}/{file}"})

    def content(self, name: str, file: str, *, large: bool) -> None:
        content = self.hub.models[name][file]
        etag = hashlib.sha256(content).hexdigest()
        if large and self.hub.spoilt:
            content = content[:-1] + b"!"
        range_ = self.headers.get("range")
        start = int(range_.removeprefix("bytes=").split("-")[0]) if range_ else 0
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": self.hub.revision, "Accept-Ranges": "bytes"}
        if range_:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        cut = self.hub.cut_after if large and self.command == "GET" else None
        self.answer(206 if range_ else 200, content[start:], headers, cut)

    def refuse(self, status: int, code: str) -> None:
        self.answer(status, b"{}", {"X-Error-Code": code})

    def answer(self, status: int, body: bytes, headers: dict[str, str], cut: int | None = None) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body[:cut])
        self.wfile.flush()
        if cut is not None:
            # Until the one who asked goes away.
            self.rfile.read(1)
            self.close_connection = True


@contextmanager
def serving(hub: Hub, port: int = 0) -> Iterator[Hub]:
    """The hub, at an address of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", port), type("Bound", (Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


def _main() -> None:
    from pathlib import Path

    port, *named = sys.argv[1:]
    folders = {name: Path(folder) for name, folder in (each.split("=", 1) for each in named)}
    models = {name: {file.name: file.read_bytes() for file in folder.iterdir()} for name, folder in folders.items()}
    with serving(Hub(models=models), int(port)) as hub:
        sys.stdout.write(f"{hub.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    _main()

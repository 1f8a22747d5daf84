"""/livez, /readyz and /metrics over HTTP, in a thread of their own, so that they answer while a step computes."""

import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST

REQUEST_TIMEOUT_S = 10


class HealthServer:
    """Listens from construction; answers from `start`."""

    def __init__(
        self, address: tuple[str, int], checks: Callable[[], dict[str, bool]], exposition: Callable[[], bytes]
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = REQUEST_TIMEOUT_S

            def do_GET(self) -> None:
                match self.path.partition("?")[0]:
                    case "/livez":
                        self._answer(200, "text/plain", b"ok\n")
                    case "/readyz":
                        found = checks()
                        status = 200 if all(found.values()) else 503
                        self._answer(status, "application/json", json.dumps(found).encode())
                    case "/metrics":
                        self._answer(200, CONTENT_TYPE_LATEST, exposition())
                    case _:
                        self._answer(404, "text/plain", b"not found\n")

            def _answer(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Probes come every few seconds and say nothing new."""

        host, port = address[0].strip("[]"), address[1]

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        self._server = Server((host, port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._server.server_address[1]

    def start(self) -> None:
        """Begins to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Closes the port."""
        self._server.shutdown()
        self._server.server_close()

"""Who may ask: programs with the engine's key or its judges', and no page in a browser. Probes need no key.

Only the engine's own key loads and unloads adapters.

On a loopback address only loopback names are answered, because a page may give its own name this machine's address.
"""

import hashlib
import hmac
from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from backtalk_worker.engine import errors

OPEN_PATHS = frozenset({"/health", "/ping", "/metrics", "/version"})
LOADING_PATHS = frozenset({"/v1/load_lora_adapter", "/v1/unload_lora_adapter"})
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class Entrance:
    """Stands before all routes; a refusal reads no byte of the body."""

    def __init__(
        self, app: ASGIApp, key: str, judge_key: str, host: str, refuse: Callable[[errors.EngineError], Response]
    ) -> None:
        self._app = app
        self._key = _digest(key) if key else None
        self._judge_key = _digest(judge_key) if judge_key else None
        self._names = LOOPBACK_NAMES | {host.lower()} if _is_loopback(host) else None
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses, or passes on."""
        if scope["type"] != "http":
            return
        try:
            self._check(str(scope["path"]), Headers(scope=scope))
        except errors.EngineError as error:
            await self._refuse(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check(self, path: str, headers: Headers) -> None:
        host, origin = _name(f"//{headers.get('host', '')}"), headers.get("origin")
        if self._names is not None and host not in self._names:
            raise errors.ForeignOriginError("Host")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise errors.ForeignOriginError("Sec-Fetch-Site")
        if origin is not None and _name(origin) != host:
            raise errors.ForeignOriginError("Origin")
        if self._key is not None and path not in OPEN_PATHS:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not self._opens(path, _digest(given.strip())):
                raise errors.UnauthorizedError

    def _opens(self, path: str, given: bytes) -> bool:
        keys = [self._key, None if path in LOADING_PATHS else self._judge_key]
        return any(key is not None and hmac.compare_digest(given, key) for key in keys)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _name(address: str) -> str | None:
    """The host of an address, without its port; None where there is none."""
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None

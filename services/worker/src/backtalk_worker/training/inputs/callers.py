"""Who may call over gRPC: services that give the token of all services and, with TLS, show a certificate of ours."""

import hmac
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn

import grpc
import grpc.aio

from backtalk_worker.training.errors import UnauthenticatedError

Continuation = Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any]"]]


class TokenGuard(grpc.aio.ServerInterceptor):
    """Refuses a call before a byte of its message is decoded."""

    def __init__(self, token: str, on_refusal: Callable[[UnauthenticatedError], None]) -> None:
        self._wanted = f"Bearer {token}".encode()
        self._on_refusal = on_refusal

    async def intercept_service(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """The method's own handler, or one that refuses and is of the same kind."""
        metadata = dict(handler_call_details.invocation_metadata or ())
        given = metadata.get("authorization", "")
        if hmac.compare_digest(given.encode() if isinstance(given, str) else given, self._wanted):
            return await continuation(handler_call_details)
        error = UnauthenticatedError()
        self._on_refusal(error)
        return grpc.stream_stream_rpc_method_handler(_refusing(error))


def _refusing(error: UnauthenticatedError) -> Callable[[Any, Any], Awaitable[NoReturn]]:
    async def refuse(_: Any, context: grpc.aio.ServicerContext[Any, Any]) -> NoReturn:
        trailers = (("backtalk-code", error.code), ("backtalk-retry", error.retry))
        await context.abort(error.status, str(error), trailers)
        raise AssertionError("abort raises")

    return refuse


def server_credentials(ca: Path, certificate: Path, key: Path) -> grpc.ServerCredentials:
    """Read once, at the start: new files are taken by a new process."""
    pair = (key.read_bytes(), certificate.read_bytes())
    return grpc.ssl_server_credentials([pair], ca.read_bytes(), require_client_auth=True)

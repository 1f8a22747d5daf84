"""Who may call over gRPC: the trainer, which gives the secret of the two and, with TLS, shows a certificate of ours."""

import hmac
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn

import grpc
import grpc.aio

from backtalk_worker.training.errors import ForbiddenError, TrainingWorkerError, UnauthenticatedError

Continuation = Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any]"]]


# As the kit's table of calls has it, which `tests/training/test_callers.py` compares.
CALLER = "trainer"
CALLER_CHARACTERS_MAX = 64


class CallerGuard(grpc.aio.ServerInterceptor):
    """Refuses a call before a byte of its message is decoded. Without a token, the caller's name alone is asked for."""

    def __init__(self, token: str, on_refusal: Callable[[TrainingWorkerError], None]) -> None:
        self._wanted = f"Bearer {token}".encode() if token else None
        self._on_refusal = on_refusal

    async def intercept_service(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """The method's own handler, or one that refuses and is of the same kind."""
        metadata = dict(handler_call_details.invocation_metadata or ())
        error = self._complaint(metadata, handler_call_details.method)
        if error is None:
            return await continuation(handler_call_details)
        self._on_refusal(error)
        return grpc.stream_stream_rpc_method_handler(_refusing(error))

    def _complaint(self, metadata: dict[str, str | bytes], method: str) -> TrainingWorkerError | None:
        caller = str(metadata.get("backtalk-caller", "unknown"))
        if caller != CALLER:
            return ForbiddenError(caller[:CALLER_CHARACTERS_MAX], method)
        given = metadata.get("authorization", "")
        known = self._wanted is None or hmac.compare_digest(
            given.encode() if isinstance(given, str) else given, self._wanted
        )
        return None if known else UnauthenticatedError()


def _refusing(error: TrainingWorkerError) -> Callable[[Any, Any], Awaitable[NoReturn]]:
    async def refuse(_: Any, context: grpc.aio.ServicerContext[Any, Any]) -> NoReturn:
        trailers = (("backtalk-code", error.code), ("backtalk-retry", error.retry))
        await context.abort(error.status, str(error), trailers)
        raise AssertionError("abort raises")

    return refuse


def certificate_ends_at(certificate: Path) -> float:
    """When the first certificate of the file ends, in seconds since 1970."""
    # Python shows a certificate's dates by no other name, but of peers that it has verified.
    facts: dict[str, Any] = ssl._ssl._test_decode_cert(str(certificate))  # pyright: ignore
    return ssl.cert_time_to_seconds(facts["notAfter"])


def server_credentials(ca: Path, certificate: Path, key: Path) -> grpc.ServerCredentials:
    """Read once, at the start: new files are taken by a new process."""
    pair = (key.read_bytes(), certificate.read_bytes())
    return grpc.ssl_server_credentials([pair], ca.read_bytes(), require_client_auth=True)

"""Where the health server listens: on the addresses of either family, as the chart's ipFamily asks."""

from http.client import HTTPConnection

import pytest

from backtalk_worker.training.inputs.http_health import HealthServer


@pytest.mark.parametrize(("address", "caller"), [("[::]", "::1"), ("[::]", "127.0.0.1"), ("0.0.0.0", "127.0.0.1")])
def test_health_is_answered_on_both_families(address: str, caller: str) -> None:
    server = HealthServer((address, 0), checks=dict, exposition=bytes)
    server.start()
    try:
        connection = HTTPConnection(caller, server.port, timeout=5)
        connection.request("GET", "/livez")
        assert connection.getresponse().status == 200
    finally:
        server.stop()

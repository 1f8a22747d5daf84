"""Who may call the training worker, here as a process: the token's bearers, and with TLS our certificates."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest
from worker_process import DEADLINE_S, WorkerProcess, error_code, start_worker, write_tiny_model

from backtalk_worker.gen.backtalk.v1 import training_pb2, training_pb2_grpc

TOKEN = "the-token-of-all-services"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    write_tiny_model(folder)
    return folder


def certificate(folder: Path, name: str, ca: str | None = None) -> None:
    """`<name>.pem` and `<name>.key`, signed by `ca` or by itself."""
    signed = [] if ca is None else ["-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-addext", "basicConstraints=CA:FALSE"]
    subject = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"]
    command = ["openssl", "req", "-x509", *key, *signed, *subject, "-days", "2", "-out", f"{name}.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    for name, ca in [("ca", None), ("server", "ca"), ("client", "ca"), ("other", None)]:
        certificate(folder, name, ca)
    return folder


@pytest.fixture(scope="module")
def guarded(model, certificates, tmp_path_factory):
    """With a token and with TLS."""
    files = {
        f"BACKTALK_TLS_{kind}": str(certificates / file)
        for kind, file in (("CA", "ca.pem"), ("CERT", "server.pem"), ("KEY", "server.key"))
    }
    running = start_worker(model, tmp_path_factory.mktemp("blobs"), BACKTALK_SERVICE_TOKEN=TOKEN, **files)
    yield running
    running.kill()


def ask(worker: WorkerProcess, channel: grpc.Channel, metadata: Sequence[tuple[str, str]] = ()) -> str:
    stub = training_pb2_grpc.TrainingWorkerServiceStub(channel)
    return stub.Status(training_pb2.StatusRequest(), timeout=DEADLINE_S, metadata=metadata).base_model


def channel_as(worker: WorkerProcess, certificates: Path, name: str | None) -> grpc.Channel:
    def read(file: str) -> bytes:
        return (certificates / file).read_bytes()

    own = () if name is None else (read(f"{name}.key"), read(f"{name}.pem"))
    return grpc.secure_channel(worker.address, grpc.ssl_channel_credentials(read("ca.pem"), *own))


def test_a_service_with_token_and_certificate_is_answered(guarded, certificates):
    with channel_as(guarded, certificates, "client") as channel:
        assert ask(guarded, channel, [("authorization", f"Bearer {TOKEN}")]) == "tiny"


@pytest.mark.parametrize("given", [None, "", "Bearer ", f"Bearer {TOKEN}x", TOKEN])
def test_a_call_without_the_token_is_refused_whatever_its_kind(guarded, certificates, given):
    metadata = [] if given is None else [("authorization", given)]
    with channel_as(guarded, certificates, "client") as channel:
        stub = training_pb2_grpc.TrainingWorkerServiceStub(channel)
        blob = training_pb2.PutBlobRequest(digest="0" * 64, data=b"x")
        calls = [
            lambda: stub.Status(training_pb2.StatusRequest(), timeout=DEADLINE_S, metadata=metadata),
            lambda: stub.PutBlob(iter([blob]), timeout=DEADLINE_S, metadata=metadata),
            lambda: list(stub.Train(training_pb2.TrainRequest(call="x"), timeout=DEADLINE_S, metadata=metadata)),
        ]
        for call in calls:
            with pytest.raises(grpc.RpcError) as refused:
                call()
            assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
            assert error_code(refused.value) == ("unauthenticated", "later")


@pytest.mark.parametrize("name", [None, "other"])
def test_a_caller_without_a_certificate_of_ours_gets_no_connection(guarded, certificates, name):
    with channel_as(guarded, certificates, name) as channel, pytest.raises(grpc.RpcError) as refused:
        ask(guarded, channel, [("authorization", f"Bearer {TOKEN}")])
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE


def test_a_caller_in_clear_gets_no_connection(guarded):
    with pytest.raises(grpc.RpcError) as refused:
        ask(guarded, guarded.channel, [("authorization", f"Bearer {TOKEN}")])
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE

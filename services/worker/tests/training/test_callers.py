"""Who may call the training worker, here as a process: the token's bearers, and with TLS our certificates."""

import re
import ssl
import subprocess
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest
from worker_process import DEADLINE_S, WorkerProcess, error_code, start_worker, write_tiny_model

from backtalk_worker.gen.backtalk.v1 import training_pb2, training_pb2_grpc
from backtalk_worker.training.inputs.callers import CALLER

TOKEN = "the-secret-of-trainer-and-training"
TRAINER = ("backtalk-caller", "trainer")
REPOSITORY = Path(__file__).parents[4]


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
    running = start_worker(model, tmp_path_factory.mktemp("blobs"), BACKTALK_TRAINER_TO_TRAINING_TOKEN=TOKEN, **files)
    yield running
    running.kill()


def ask(worker: WorkerProcess, channel: grpc.Channel, metadata: Sequence[tuple[str, str]] = ()) -> str:
    stub = training_pb2_grpc.TrainingWorkerServiceStub(channel)
    return stub.Status(training_pb2.StatusRequest(), timeout=DEADLINE_S, metadata=metadata).base_model


SERVICE = training_pb2.DESCRIPTOR.services_by_name["TrainingWorkerService"].full_name
METHODS = [method.name for method in training_pb2.DESCRIPTOR.services_by_name["TrainingWorkerService"].methods]


def refusal(channel: grpc.Channel, method: str, metadata: tuple[tuple[str, str], ...]) -> grpc.RpcError:
    """Of an empty message: on the wire all kinds of calls are one."""
    call = channel.stream_stream(f"/{SERVICE}/{method}")
    with pytest.raises(grpc.RpcError) as refused:
        list(call(iter([b""]), timeout=DEADLINE_S, metadata=metadata))
    return refused.value


def channel_as(worker: WorkerProcess, certificates: Path, name: str | None) -> grpc.Channel:
    def read(file: str) -> bytes:
        return (certificates / file).read_bytes()

    own = () if name is None else (read(f"{name}.key"), read(f"{name}.pem"))
    return grpc.secure_channel(worker.address, grpc.ssl_channel_credentials(read("ca.pem"), *own))


def test_a_service_with_token_and_certificate_is_answered(guarded, certificates):
    with channel_as(guarded, certificates, "client") as channel:
        assert ask(guarded, channel, [TRAINER, ("authorization", f"Bearer {TOKEN}")]) == "tiny"


@pytest.mark.parametrize("given", [None, "", "Bearer ", f"Bearer {TOKEN}x", TOKEN])
def test_a_call_without_the_token_is_refused_whatever_its_kind(guarded, certificates, given):
    metadata = (TRAINER,) if given is None else (TRAINER, ("authorization", given))
    with channel_as(guarded, certificates, "client") as channel:
        for method in METHODS:
            refused = refusal(channel, method, metadata)
            assert refused.code() == grpc.StatusCode.UNAUTHENTICATED
            assert error_code(refused) == ("unauthenticated", "later")


@pytest.mark.parametrize("caller", ["gateway", "collector", "judge", "publisher", "loader", "cli", "engine", None])
def test_no_part_but_the_trainer_may_call_any_method_whatever_it_brings(guarded, certificates, caller):
    name: tuple[tuple[str, str], ...] = () if caller is None else (("backtalk-caller", caller),)
    with channel_as(guarded, certificates, "client") as channel:
        for method in METHODS:
            for token in ((), (("authorization", f"Bearer {TOKEN}"),)):
                refused = refusal(channel, method, name + token)
                assert refused.code() == grpc.StatusCode.PERMISSION_DENIED
                said = f"'{caller or 'unknown'}' may not call /{SERVICE}/{method}, which is for trainer"
                assert refused.details() == said
                assert error_code(refused) == ("caller_forbidden", "later")


def test_who_may_call_is_what_the_table_of_calls_says():
    table = (REPOSITORY / "services/lib/kit/src/topology/calls.ts").read_text()
    rows = re.findall(
        r"caller: '(\w+)',\s+callee: 'training',\s+service: '([\w.]+)',\s+methods: \[(.*?)\]", table, re.S
    )
    assert rows == [(CALLER, SERVICE, ", ".join(f"'{method}'" for method in METHODS))]


@pytest.mark.parametrize("name", [None, "other"])
def test_a_caller_without_a_certificate_of_ours_gets_no_connection(guarded, certificates, name):
    with channel_as(guarded, certificates, name) as channel, pytest.raises(grpc.RpcError) as refused:
        ask(guarded, channel, [("authorization", f"Bearer {TOKEN}")])
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE


def test_the_end_of_the_certificate_is_told_from_the_start_on(guarded, certificates):
    with urllib.request.urlopen(f"http://{guarded.health}/metrics", timeout=DEADLINE_S) as answer:
        name = "backtalk_training_certificate_expiry_timestamp_seconds"
        (told,) = re.findall(rf"^{name} (\S+)$", answer.read().decode(), re.M)
    command = ["openssl", "x509", "-noout", "-enddate", "-in", certificates / "server.pem"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert float(told) == ssl.cert_time_to_seconds(said.strip().removeprefix("notAfter="))


def test_a_caller_in_clear_gets_no_connection(guarded):
    with pytest.raises(grpc.RpcError) as refused:
        ask(guarded, guarded.channel, [("authorization", f"Bearer {TOKEN}")])
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE

"""The cache of blobs: whole or absent, verified, bounded."""

import asyncio
import hashlib
import resource
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from backtalk_worker.gen.backtalk.v1 import training_pb2
from backtalk_worker.process.log import create_logger
from backtalk_worker.training.errors import (
    BlobMissingError,
    BlobRefusedError,
    CacheFailedError,
    CacheHeldError,
)
from backtalk_worker.training.events import TrainingEvents
from backtalk_worker.training.inputs.grpc_service import TrainingWorkerServicer
from backtalk_worker.training.inputs.training_calls import TrainingCalls
from backtalk_worker.training.outputs.blob_cache import MADE, SENT, SENT_MAX, BlobCache, hold_folder


def digest_of(data):
    return hashlib.sha256(data).hexdigest()


def test_a_blob_comes_back_and_survives_a_restart(tmp_path):
    digest = BlobCache(tmp_path, 1000).put(b"weights")
    assert digest == digest_of(b"weights")
    again = BlobCache(tmp_path, 1000)
    assert again.get(digest) == b"weights"
    assert again.missing([digest, "0" * 64]) == ["0" * 64]


def test_a_damaged_blob_counts_as_missing(tmp_path):
    cache = BlobCache(tmp_path, 1000)
    digest = cache.put(b"weights")
    (tmp_path / digest).write_bytes(b"weightz")
    with pytest.raises(BlobMissingError):
        cache.get(digest)
    assert cache.missing([digest]) == [digest]
    assert cache.put(b"weights") == digest


def test_wrong_bytes_are_refused_and_leave_nothing(tmp_path):
    cache = BlobCache(tmp_path, 1000)
    with pytest.raises(BlobRefusedError), cache.writer(digest_of(b"a")) as writer:
        writer.write(b"b")
        writer.finish()
    with pytest.raises(BlobRefusedError):
        cache.writer("../../etc/passwd")
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_stops_half_way_leaves_nothing(tmp_path):
    cache = BlobCache(tmp_path, 1000)
    with pytest.raises(KeyboardInterrupt), cache.writer(digest_of(b"ab")) as writer:
        writer.write(b"a")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing_that_keeps_it_full(tmp_path):
    cache = BlobCache(tmp_path, 10_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(CacheFailedError), cache.writer(digest_of(b"a" * 5_000)) as writer:
            writer.write(b"a" * 5_000)
            writer.finish()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert list(tmp_path.iterdir()) == []


def test_parts_left_by_a_killed_process_are_removed_at_the_start(tmp_path):
    (tmp_path / "x.part").write_bytes(b"torn")
    cache = BlobCache(tmp_path, 1000)
    assert list(tmp_path.iterdir()) == []
    assert cache.bytes_held == 0


def test_the_least_recently_used_goes_first_and_pinned_ones_stay(tmp_path):
    cache = BlobCache(tmp_path, 250)
    first, second = cache.put(b"1" * 100), cache.put(b"2" * 100)
    cache.get(first)
    cache.pin(MADE, [])
    third = cache.put(b"3" * 100)
    assert cache.missing([first, second, third]) == [second]
    cache.pin("step", [first])
    cache.pin(MADE, [])
    fourth = cache.put(b"4" * 100)
    assert cache.missing([first, third, fourth]) == [third]
    cache.pin("step", [])
    assert cache.bytes_held <= 250


def test_a_blob_larger_than_the_cache_is_refused(tmp_path):
    with pytest.raises(BlobRefusedError):
        BlobCache(tmp_path, 10).put(b"x" * 11)


def test_what_a_step_makes_stays_until_its_result_is_pinned_however_much_it_is(tmp_path):
    cache = BlobCache(tmp_path, 150)
    adapter, optimiser = cache.put(b"a" * 60), cache.put(b"o" * 120)
    assert cache.missing([adapter, optimiser]) == []
    cache.pin("results", [adapter, optimiser])
    cache.pin(MADE, [])
    cache.put(b"n" * 140)
    assert cache.missing([adapter, optimiser]) == []
    cache.pin("results", [])
    cache.pin(MADE, [])
    cache.put(b"m")
    assert adapter in cache.missing([adapter, optimiser])


def sent(cache, data):
    digest = digest_of(data)
    with cache.writer(digest) as writer:
        writer.write(data)
        writer.finish(SENT)
    return digest


class Wire:
    """A worker that can be asked in this process, and computes nothing: a step reads what it begins with."""

    def __init__(self, cache):
        self.cache = cache
        events = TrainingEvents(create_logger("training", "error"))
        self.calls = TrainingCalls(self.read, ThreadPoolExecutor(1), cache, events)
        self.servicer = TrainingWorkerServicer(None, cache, self.calls, None, events, None)  # type: ignore[arg-type]

    def read(self, request, _progress):
        for file in [*request.parent_adapter, *request.parent_training_state]:
            self.cache.get(file.digest)
        return training_pb2.TrainResult()

    async def put(self, data):
        async def parts():
            yield training_pb2.PutBlobRequest(digest=digest_of(data), data=data)

        return (await self.servicer.PutBlob(parts(), None)).digest  # type: ignore[arg-type]

    async def train(self, call, adapter, state):
        request = training_pb2.TrainRequest(call=call)
        request.parent_adapter.add(name="adapter", digest=adapter)
        request.parent_training_state.add(name="state", digest=state)
        return [response async for response in self.calls.train(request)]


def test_the_parents_of_two_steps_stay_until_these_begin_however_much_they_are(tmp_path):
    async def both():
        cache = BlobCache(tmp_path, 150)
        wire = Wire(cache)
        one = [await wire.put(b"a" * 100), await wire.put(b"o" * 120)]
        other = [await wire.put(b"b" * 100), await wire.put(b"p" * 120)]
        await wire.train("one", *one)
        assert cache.missing(other) == []
        await wire.train("other", *other)
        # What has had its step is as any other from then on.
        cache.put(b"n" * 140)
        assert cache.missing([*one, *other]) == [*one, *other]

    asyncio.run(both())


def test_what_was_sent_waits_for_the_rest_of_its_parent_so_that_trying_again_ends(tmp_path):
    async def tries():
        cache = BlobCache(tmp_path, 150)
        wire = Wire(cache)
        parent = {digest_of(data): data for data in (b"a" * 100, b"o" * 120)}
        # One half is here already, and nothing holds it.
        cache.put(b"o" * 120)
        cache.pin(MADE, [])
        for attempt in range(1, 5):
            for digest in cache.missing(parent):
                await wire.put(parent[digest])
            try:
                await wire.train("again", *parent)
                return attempt
            except BlobMissingError:
                continue
        return None

    assert asyncio.run(tries()) == 2


def test_what_is_sent_for_steps_that_never_come_goes_for_what_is_sent_later(tmp_path):
    cache = BlobCache(tmp_path, 10)
    digests = [sent(cache, bytes([number]) * 8) for number in range(SENT_MAX + 2)]
    assert cache.missing(digests) == digests[:2]
    # Sent twice, it counts once, and as the newest.
    sent(cache, bytes([2]) * 8)
    more = [sent(cache, bytes([number]) * 8) for number in range(20, 19 + SENT_MAX)]
    assert cache.missing([digests[2], *more]) == []


def test_a_folder_is_for_one_worker_at_a_time(tmp_path):
    held = hold_folder(tmp_path)
    with pytest.raises(CacheHeldError, match="BACKTALK_BLOB_CACHE_DIR"):
        hold_folder(tmp_path)
    held.close()
    hold_folder(tmp_path).close()

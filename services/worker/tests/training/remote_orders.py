"""Orders for a training service with Tinker's API, and the backend that talks to the stand-in of one."""

from dataclasses import replace

from safetensors.torch import load
from tinker_server import KEY
from tiny_policy import RECIPE, VOCABULARY, changed, items_of, silent, tiny_model

from backtalk_worker.training.inputs.decode import TrainOrder
from backtalk_worker.training.inputs.remote_work import RemoteBackend
from backtalk_worker.training.outputs.base_model import BaseFacts
from backtalk_worker.training.outputs.tinker_service import TinkerService
from backtalk_worker.training.outputs.version_files import VersionFiles

SAMPLED = replace(RECIPE, opd_form="sampled", kl_form="sampled", kl_beta=0.05, opd_advantage_clip=2.0)
FACTS = BaseFacts("tiny", "float32", "remote", "d" * 64, 64, VOCABULARY, (0,), ())
SEED = 3
PROBES = ((4, 5, 6), (7, 8))


def samples_of(**fields):
    items = items_of(tiny_model(), ((5, 4), (9, 2), (3, 8)))
    return tuple(changed(item, temperature=1.0, **fields).sample for item in items)


def order_of(recipe=SAMPLED, samples=None, parent=None, **fields):
    given = {
        "call": "policy/v1 batch", "seed": SEED, "recipe": recipe, "samples": samples or samples_of(),
        "parent_adapter": {}, "parent_training_state": {}, "probes": (), "told_probes": (),
    }  # fmt: skip
    if parent is not None:
        given["parent_adapter"] = {file.name: file.digest for file in parent.adapter}
        given["parent_training_state"] = {file.name: file.digest for file in parent.training_state}
    return TrainOrder(**given | fields)


class Remote:
    """A service, and the backend that talks to it."""

    def __init__(self, server, blobs, **settings):
        given = {"url": server.url, "key": KEY, "model": "", "reduction": "sum", "call_seconds": 60.0} | settings
        self.blobs = blobs
        self.backend = RemoteBackend(FACTS, TinkerService(**given), VersionFiles(blobs))

    def train(self, order, progress=silent):
        result = self.backend.train(order, progress)
        adapter = {file.name: file.digest for file in result.adapter}
        return result, load(self.blobs.get(adapter["adapter_model.safetensors"]))

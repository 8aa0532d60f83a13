# By digest: a tag may be moved. The tag says to people which one it is.
FROM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
RUN python -m venv /opt/build && python -m venv /opt/reserver
WORKDIR /src
# First what seldom changes, each file checked against its hash: what builds, and what runs.
COPY requirements-build.lock requirements.lock ./
RUN /opt/build/bin/pip install --no-cache-dir --only-binary :all: --require-hashes -r requirements-build.lock \
    && /opt/reserver/bin/pip install --no-cache-dir --only-binary :all: --require-hashes -r requirements.lock
COPY pyproject.toml PACKAGE.md LICENSE ./
COPY scheduler-config/core scheduler-config/core
COPY reserver reserver
COPY reserver_demo reserver_demo
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/reserver/bin/pip install --no-cache-dir --no-deps --no-index /wheels/*.whl \
    && /opt/reserver/bin/pip uninstall --yes pip

FROM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
COPY --from=build /opt/reserver /opt/reserver
# All bytecode is compiled above: nothing is written, so the root file system can be read-only.
ENV PATH=/opt/reserver/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["reserver"]

# By digest: a tag may be moved. The tag says to people which one it is.
# This stage runs where the image is built, for whatever architecture: nothing of another one has to run.
FROM --platform=$BUILDPLATFORM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
# No default: it would count for more than what the builder says.
ARG TARGETARCH
RUN python -m venv /opt/build && python -m venv --without-pip /opt/reserver
WORKDIR /src
# First what seldom changes, each file checked against its hash: what builds, and what runs.
COPY requirements-build.lock requirements.lock ./
RUN /opt/build/bin/pip install --no-cache-dir --only-binary :all: --require-hashes -r requirements-build.lock \
    && case "${TARGETARCH:-$(uname -m)}" in \
       arm64 | aarch64) machine=aarch64 ;; amd64 | x86_64) machine=x86_64 ;; *) exit 1 ;; esac \
    && /opt/build/bin/uv pip install --no-cache --system-certs --link-mode copy --python /opt/reserver/bin/python \
       --python-platform "$machine-manylinux_2_34" --only-binary :all: --require-hashes -r requirements.lock \
    && rm /opt/reserver/.lock
COPY pyproject.toml PACKAGE.md LICENSE ./
COPY scheduler-config/core scheduler-config/core
COPY scheduler-config/components/moves scheduler-config/components/moves
COPY scheduler-config/components/maintenance scheduler-config/components/maintenance
COPY reserver reserver
COPY reserver_demo reserver_demo
# Bytecode by the hash of its source, which is never looked at again: no file's time matters, so the same
# commit gives the same image. -f: pip leaves some that were compiled by time.
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/build/bin/pip --python /opt/reserver/bin/python install --no-cache-dir --no-compile --no-deps --no-index /wheels/*.whl \
    && PYTHONHASHSEED=0 python -m compileall -f -q --invalidation-mode unchecked-hash /opt/reserver/lib

FROM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Reserver" \
      org.opencontainers.image.description="Capacity reservations for the stock kube-scheduler" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /opt/reserver /opt/reserver
# All bytecode is compiled above: nothing is written, so the root file system can be read-only.
ENV PATH=/opt/reserver/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["reserver"]

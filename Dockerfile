FROM python:3.13-slim AS build
RUN python -m venv /opt/reserver
WORKDIR /src
# First what seldom changes, each file checked against its hash.
COPY requirements.lock ./
RUN /opt/reserver/bin/pip install --no-cache-dir --only-binary :all: --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY reserver reserver
RUN /opt/reserver/bin/pip install --no-cache-dir --no-deps . \
    && /opt/reserver/bin/pip uninstall --yes pip

FROM python:3.13-slim
COPY --from=build /opt/reserver /opt/reserver
# All bytecode is compiled above: nothing is written, so the root file system can be read-only.
ENV PATH=/opt/reserver/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["reserver"]

#!/bin/sh
# Generates reserverv1 from the contracts, with the plug-ins that go.mod pins. It takes protoc from
# PATH, or else that of a checkout (`make venv`).
set -eu
cd "$(dirname "$0")"
protos=../../proto
if command -v protoc >/dev/null; then protoc=protoc; else
  protoc="../../.venv/bin/python -m grpc_tools.protoc"
fi
package=example.com/manager/reserverv1
$protoc --proto_path="$protos" \
  --plugin=protoc-gen-go="$(go tool -n protoc-gen-go)" \
  --plugin=protoc-gen-go-grpc="$(go tool -n protoc-gen-go-grpc)" \
  --go_out=. --go-grpc_out=. \
  --go_opt=module=example.com/manager,Mreserver/v1/reservation.proto=$package \
  --go-grpc_opt=module=example.com/manager,Mreserver/v1/reservation.proto=$package \
  "$protos/reserver/v1/reservation.proto"

#!/usr/bin/env bash
# Runs the e2e scenarios on a kind cluster, with the image and the manifests that users get.
# Needs docker, kind and .venv; KWOK plays the kubelets of the scenarios' nodes.
#
#   hack/e2e-kind.sh [PYTEST_ARGUMENT...]
#   KEEP=1              leave the cluster (and its kubeconfig) behind
#   KIND_NODE_IMAGE     kindest/node image; default: what this kind comes with
set -euo pipefail
cd "$(dirname "$0")/.."

cluster=reserver-e2e
for tool in docker kind .venv/bin/pytest; do
  command -v "$tool" >/dev/null || { echo "e2e-kind: $tool is missing" >&2; exit 1; }
done
python3 hack/controlplane/build.py
kubectl=$(python3 -c 'from hack.controlplane.build import bin_dir; print(bin_dir() / "kubectl")')

folder=$(mktemp -d)
export KUBECONFIG=$folder/kubeconfig
kwok=
finish() {
  [ -z "$kwok" ] || kill "$kwok" || true
  if [ "${KEEP:-}" = 1 ]; then
    echo "kept: export KUBECONFIG=$KUBECONFIG; kind delete cluster --name $cluster"
  else
    kind delete cluster --name "$cluster" || true
    rm -rf "$folder"
  fi
}

docker build --tag reserver:dev .
# A cluster that an earlier run kept is not ours to delete: kind refuses, and we stop before the trap.
kind create cluster --name "$cluster" --wait 2m ${KIND_NODE_IMAGE:+--image "$KIND_NODE_IMAGE"}
trap finish EXIT
kind load docker-image reserver:dev --name "$cluster"

# kind's own daemons would request room on the scenarios' nodes, which count every millicore.
for daemon in kindnet kube-proxy; do
  "$kubectl" -n kube-system patch daemonset "$daemon" --type merge --patch \
    '{"spec":{"template":{"spec":{"nodeSelector":{"node-role.kubernetes.io/control-plane":""}}}}}'
done

# The store that the scenarios name to reserver lies in a namespace of its own.
"$kubectl" create namespace unicore
"$kubectl" -n unicore create role reserver --verb=get,list,watch,create,patch --resource=configmaps
"$kubectl" -n unicore create rolebinding reserver --role=reserver \
  --serviceaccount=reserver-system:reserver

# kube-scheduler may not be newer than the API server.
version=$("$kubectl" get --raw /version | python3 -c 'import json, sys; print(json.load(sys.stdin)["gitVersion"])')
"$kubectl" kustomize hack/kind \
  | sed "s|\(registry.k8s.io/kube-scheduler\):.*|\1:$version|" \
  | "$kubectl" apply --filename -
"$kubectl" -n reserver-system rollout status deployment/reserver-scheduler --timeout 3m

python3 -m hack.controlplane.kwok --kubeconfig "$KUBECONFIG" >"$folder/kwok.log" 2>&1 &
kwok=$!
.venv/bin/pytest tests/e2e --kubeconfig "$KUBECONFIG" --scheduler-name reserver-scheduler \
  -m "not controlplane" "$@"

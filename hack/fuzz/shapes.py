"""Documents as they are sent and written, with every field that is read."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

AMOUNTS: Document = {"cpu": "100m", "memory": "1Gi", "pods": 3, "nvidia.com/gpu": 1}
RESOURCES: Document = {"requests": AMOUNTS, "limits": AMOUNTS}
TERM: Document = {
    "labelSelector": {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}],
    },
    "namespaceSelector": {},
    "namespaces": ["shop"],
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "maxSkew": 1,
    "minDomains": 2,
    "matchLabelKeys": ["app"],
}
NODE_TERMS: Document = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}],
        }
    ]
}
METADATA: Document = {
    "name": "web-0",
    "namespace": "shop",
    "uid": "u",
    "resourceVersion": "7",
    "annotations": {"reserver.io/claims": '["a"]', "pv.kubernetes.io/bind-completed": "yes"},
    "continue": "x",
    "labels": {"app": "web", "topology.kubernetes.io/zone": "a__b"},
    "ownerReferences": [{"kind": "Job", "name": "j", "uid": "u", "controller": True}],
    "deletionTimestamp": "2030-01-01T00:00:00Z",
}
PORTS = [{"hostPort": 80, "hostIP": "10.0.0.1", "protocol": "TCP"}]
CONTAINER: Document = {
    "name": "web",
    "restartPolicy": "Always",
    "resources": RESOURCES,
    "ports": PORTS,
}
STATUS: Document = {"name": "web", "allocatedResources": AMOUNTS, "resources": RESOURCES}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Document = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
POD: Document = {
    "metadata": METADATA,
    "spec": {
        "nodeName": "worker-1",
        "priority": 7,
        "containers": [CONTAINER],
        "initContainers": [CONTAINER],
        "resources": RESOURCES,
        "overhead": AMOUNTS,
        "affinity": {
            "nodeAffinity": PREFERRED | {REQUIRED: NODE_TERMS},
            "podAffinity": PREFERRED,
            "podAntiAffinity": {REQUIRED: [TERM]},
        },
        "topologySpreadConstraints": [TERM],
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "a"}, "ephemeral": {}}],
    },
    "status": {
        "phase": "Running",
        "nominatedNodeName": "worker-1",
        "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
        "containerStatuses": [STATUS],
        "initContainerStatuses": [STATUS],
        "allocatedResources": AMOUNTS,
        "resources": RESOURCES,
    },
}
NODE: Document = {
    "metadata": METADATA,
    "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}], "unschedulable": True},
    "status": {"allocatable": AMOUNTS},
}
CLAIM: Document = {
    "metadata": METADATA,
    "spec": {"volumeName": "pv", "storageClassName": "a", "accessModes": ["ReadWriteOncePod"]},
    "status": {"phase": "Bound"},
}
VOLUME: Document = {"metadata": METADATA, "spec": {"nodeAffinity": {"required": NODE_TERMS}}}
CLASS: Document = {"metadata": METADATA, "volumeBindingMode": "Immediate"}
CONFIGMAP: Document = {"metadata": METADATA, "data": {"web": "x"}}
FILTER: Document = {"Pod": POD, "NodeNames": ["worker-1"], "Nodes": None}
PREEMPT: Document = {
    "Pod": POD,
    "NodeNameToMetaVictims": {"worker-1": {"Pods": [{"UID": "u"}, None], "NumPDBViolations": 1}},
    "NodeNameToVictims": {"worker-2": {"Pods": [POD], "NumPDBViolations": 0}},
}
BIND: Document = {"PodName": "a", "PodNamespace": "b", "PodUID": "c", "Node": "d"}
EVENT: Document = {"type": "ADDED", "object": POD}
LIST: Document = {"metadata": METADATA, "items": [POD]}
FAILURE: Document = {"code": 410, "reason": "Expired", "message": "too old"}
LEASE: Document = {
    "metadata": METADATA,
    "spec": {
        "holderIdentity": "a_b",
        "leaseDurationSeconds": 15,
        "acquireTime": "2030-01-01T00:00:00.000000Z",
        "renewTime": "2030-01-01T00:00:00.000000Z",
        "leaseTransitions": 1,
    },
}

SHORT_ITEM: Document = {
    "pod": "web-0",
    "namespace": "shop",
    "cpu": 1,
    "mem": 1,
    "expire": 1899999999,
}
LONG_ITEM: Document = {
    "reservingPod": "a",
    "reservingPodNamespace": "b",
    "cpuMilli": 1,
    "memMilli": 1,
    "expireAt": "2030-01-01T00:00:00Z",
}
SPEC: Document = {
    "owners": [{"pod": {"name": "web-0", "namespace": "shop"}}],
    "resources": AMOUNTS,
    "node": "worker-1",
    "slots": 2,
    "startsAt": "2029-01-01T00:00:00Z",
    "expiresAt": "2030-01-01T00:00:00Z",
    "ttl": "1h",
    "policy": "Require",
    "reusable": False,
}
PLACED: Document = {
    "owners": SPEC["owners"],
    "resources": AMOUNTS,
    "slots": 3,
    "placement": {
        "nodeSelector": {"zone": "a"},
        "affinity": POD["spec"]["affinity"],
        "tolerations": POD["spec"]["tolerations"],
        "topologySpreadConstraints": [TERM],
        "strategy": "spread",
    },
    "placements": [{"node": "worker-1", "slots": 2}, {"node": "worker-2", "slots": 1}],
}
ENTRY_STATUS: Document = {
    "phase": "Active",
    "backed": False,
    "digest": "d",
    "message": "no room",
    "claims": {"u": 7},
}
COMPANION: Document = {
    "metadata": {"resourceVersion": "7", "ownerReferences": [{"uid": "u"}]},
    "data": {
        "web": '{"phase":"Active","backed":true,"digest":"d","message":"","claims":{"u":7}}',
        "worker-1": '{"shop/web-0":{"phase":"Active","backed":false,"digest":"d","message":"m"}}',
    },
}

RESERVATIONS: tuple[Document, ...] = tuple(
    {
        "metadata": METADATA
        | {
            "creationTimestamp": "2030-01-01T00:00:00Z",
            "generation": 2,
            "labels": {"reserver.io/set": "a"},
        },
        "spec": spec,
        "status": {
            "phase": "Active",
            "observedGeneration": 1,
            "claimed": 1,
            "expiresAt": "2030-01-01T00:00:00Z",
            "placements": PLACED["placements"],
            "claims": [
                {"pod": "shop/web-0", "uid": "v", "node": "worker-1", "at": "2030-01-01T00:00:00Z"}
            ],
            "conditions": [
                {
                    "type": "Backed",
                    "status": "True",
                    "reason": "RoomHeld",
                    "message": "m",
                    "lastTransitionTime": "2030-01-01T00:00:00Z",
                    "observedGeneration": 1,
                }
            ],
        },
    }
    for spec in ({**SPEC, "ttl": None}, {**PLACED, "placements": None, "requestId": "r"})
)
REVIEW: Document = {
    "status": {
        "authenticated": True,
        "allowed": True,
        "user": {
            "username": "system:serviceaccount:shop:web",
            "uid": "u",
            "groups": ["system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": ["JTI=1"]},
        },
        "audiences": ["reserver"],
    }
}
QUESTION: tuple[Document, ...] = (
    {
        "owners": [{"pod": {"name": "web-0", "namespace": "shop"}}],
        "resources": {"cpu": "2"},
        "slots": 2,
        "node": "worker-1",
        "expiresAt": "2030-01-01T00:00:00Z",
        "policy": "POLICY_REQUIRE",
        "preemptible": True,
        "priority": 3,
    },
    {
        "owners": [{"selector": {"matchLabels": {"app": "web"}, "namespace": "shop"}}],
        "resources": {"cpu": "100m"},
        "ttl": "3600s",
        "placement": {
            "nodeSelector": {"zone": "a"},
            "affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone"}]}},
            "strategy": "STRATEGY_SPREAD",
        },
    },
)

QUOTA: Document = {
    "metadata": METADATA,
    "spec": {
        "hard": {"reservations": "10", "held.cpu": "8", "held.nvidia.com/gpu": 2, "held.*": "0"},
        "maxTTL": "168h",
        "nodeNames": "Forbidden",
        "firmHolds": "Allowed",
    },
    "status": {"hard": {"held.cpu": "8"}, "used": {"held.cpu": "1500m", "reservations": "2"}},
}

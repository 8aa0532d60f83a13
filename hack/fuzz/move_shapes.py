"""PodMoves with every field that is read."""

from __future__ import annotations

from hack.fuzz.shapes import METADATA, Document

MOVES: tuple[Document, ...] = (
    {
        "metadata": METADATA | {"creationTimestamp": "2030-01-01T00:00:00Z", "generation": 2},
        "spec": {
            "pod": {"name": "web-0", "uid": "u"},
            "to": {"nodeSelector": {"zone": "a"}},
            "mode": "ReserveFirst",
            "timeout": "1h30m",
            "deleteOptions": {"gracePeriodSeconds": 30},
            "group": {"name": "drain", "size": 3},
            "paused": True,
            "urgent": True,
            "ttlSecondsAfterFinished": 60,
        },
        "status": {
            "phase": "Landing",
            "reason": "WaitsForReplacement",
            "message": "m",
            "observedGeneration": 2,
            "podUID": "u",
            "pod": "web-0",
            "foundAt": "2030-01-01T00:00:00.000001Z",
            "windowOpensAt": "2030-01-01T22:00:00Z",
            "windowOpenedAt": "2030-01-01T00:00:00.000003Z",
            "controller": {"kind": "ReplicaSet", "name": "web"},
            "from": "worker-1",
            "to": "worker-2",
            "reservation": "web-0123",
            "replacement": {"name": "web-1", "uid": "v", "node": "worker-2"},
            "fallback": None,
            "fellBackAt": None,
            "surgedAt": None,
            "handedOverAt": None,
            "startedAt": "2030-01-01T00:00:00.123456Z",
            "evictedAt": "2030-01-01T00:00:01.999999Z",
            "finishedAt": "2030-01-01T00:00:02.000001Z",
            "conditions": [
                {
                    "type": "WindowOpened",
                    "status": "True",
                    "reason": "WindowOpened",
                    "message": "its window opened",
                    "lastTransitionTime": "2030-01-01T00:00:00.000003Z",
                    "observedGeneration": 2,
                },
                {
                    "type": "Evicted",
                    "status": "True",
                    "reason": "PodLeft",
                    "message": "the pod has left worker-1",
                    "lastTransitionTime": "2030-01-01T00:00:01.999999Z",
                    "observedGeneration": 2,
                },
                {
                    "type": "Done",
                    "status": "True",
                    "reason": "WaitsForReplacement",
                    "message": "m",
                    "lastTransitionTime": "2030-01-01T00:00:02.000001Z",
                    "observedGeneration": 2,
                },
            ],
        },
    },
    {
        "metadata": METADATA | {"creationTimestamp": "2030-01-01T00:00:00Z"},
        "spec": {"pod": {"name": "web-0"}, "to": {"node": "worker-2"}, "mode": "EvictOnly"},
    },
    {
        "metadata": METADATA | {"creationTimestamp": "2030-01-01T00:00:00Z"},
        "spec": {"pod": {"name": "web-0", "after": "first"}},
        "status": {
            "phase": "Pending",
            "reason": "WaitsForTurn",
            "message": "m",
            "observedGeneration": 2,
            "podUID": "v",
            "pod": "web-1",
            "foundAt": "2030-01-01T00:00:00.000002Z",
            "from": "worker-1",
            "conditions": [],
        },
    },
)

"""The message of an explanation, which is as large as the cluster has nodes with holds."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct

from reserver.k8s.objects.objects import encode
from reserver.scheduling.explain import Explanation, explain
from reserver.v1 import capacity_pb2 as pb
from tests.builders import NOW, node, pod, reservation, state_of
from tests.unit.grpc.services import service_of

_NODES = 200


def _explanation() -> Explanation:
    names = [f"n{number}" for number in range(_NODES)]
    holds = (reservation(name, node=name, cpu="4") for name in names)
    stranger = pod("stranger", cpu="4", memory="1Gi")
    state = state_of(*(node(name, cpu="4") for name in names), *holds, stranger)
    return explain(stranger, state, NOW)


class _Extender:
    def __init__(self, explanation: Explanation) -> None:
        self._explanation = explanation

    async def explain(self, _: Any) -> Explanation:
        return self._explanation


async def test_a_large_explanation_is_shown_in_steps() -> None:
    explanation = _explanation()
    capacity = service_of(extender=_Extender(explanation))._capacity
    request, context = pb.ExplainRequest(pod_namespace="shop", pod_name="stranger"), Any
    call, turns = asyncio.create_task(capacity.Explain(request, context)), 0  # type: ignore[arg-type]
    while not call.done():
        turns += 1
        await asyncio.sleep(0)
    expected = json_format.Parse(encode(asdict(explanation)), Struct())
    assert (await call).explanation == expected
    assert len(explanation.nodes_with_holds) == _NODES
    assert turns > 5

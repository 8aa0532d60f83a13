from typing import Any

from reserver.errors import ApiError
from tests.unit.moves.api_server import PODS
from tests.unit.moves.world import World

BLOCKED = ApiError(429, "TooManyRequests", "it would violate the pod's disruption budget")
PLAN: dict[str, Any] = {"group": {"name": "rebalance-1", "size": 1}, "to": {"node": "worker-2"}}


def planned(world: World) -> None:
    """Write the move of a plan that assumed that web-0 fits on worker-2."""
    uid = world.api.objects[f"{PODS}/web-0"]["metadata"]["uid"]
    world.move(pod={"name": "web-0", "uid": uid}, **PLAN)

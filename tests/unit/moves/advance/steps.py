"""Observations of a move that the tests of its steps share."""

from reserver.moves.model import MoveGroup, Replacement
from reserver.moves.observation import MoveTurn, ObservedSeat
from tests.unit.moves.build import POD, move, wanted

NOT_YET = MoveTurn(may_begin=False, may_evict=False, why="2 moves of worker-1 are under way")
BLOCKED = NOT_YET._replace(why="the budget web allows none", is_blocked=True)
CAME = Replacement("web-2", "uid-2", "worker-2")
PLANNED = move(spec=wanted(uid=POD.uid, node="worker-2", group=MoveGroup("rebalance-1", 1)))
GONE_NODE = ObservedSeat(node="worker-2", impossible="worker-2 is gone")

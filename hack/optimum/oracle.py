"""Asks CP-SAT for the best plan of a cluster; shares neither code nor environment with Reserver.

It reads a question on standard input and writes its answer to standard output, both as JSON.
OR-Tools needs a protobuf that is older than gRPC's, so `make optimum` has an environment for it.
The order of moves is not asked for: no plan is better than the bound, and the best may have none.
Its searches begin with Reserver's plan, so that its plans are never worse.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict
from typing import Any

from ortools.sat.python import cp_model

Named = dict[str, Any]
Sum = Any
"""Of CP-SAT's variables: OR-Tools is not there where types are checked."""


class Cluster:
    """The variables of CP-SAT: pods of each app that stay on each node, and pods that enter."""

    def __init__(self, found: Named, *, landing: bool) -> None:
        """Write down the constraints of a cluster, as hack/optimum/instances.py has it.

        Args:
            found: the cluster.
            landing: pods are to land; else nodes are to be emptied.
        """
        self.model = cp_model.CpModel()
        self.nodes: dict[str, Named] = found["nodes"]
        self.apps: dict[str, Named] = found["apps"]
        self.at_home = Counter((app, node) for app, node in found["pods"].values() if node)
        self.pending = Counter(app for app, node in found["pods"].values() if not node)
        self.there = defaultdict[tuple[str, str], Sum](int)
        self.stays: dict[tuple[str, str], Sum] = {}
        self.enters: dict[tuple[str, str], Sum] = {}
        self.lands: dict[tuple[str, str], Sum] = {}
        self._count()
        self.empty = {} if landing else self._may_be_empty()
        for node in self.nodes.values():
            self._keep_room(node)
        for app in self.apps.values():
            self._keep_budget(app)
            self._keep_apart(app)
            self._keep_near(app)
            self._keep_spread(app)

    def _count(self) -> None:
        model = self.model
        for name, app in self.apps.items():
            total = sum(self.at_home[name, node] for node in self.nodes)
            for node, machine in self.nodes.items():
                home = self.at_home[name, node]
                key = (name, node)
                if home:
                    self.stays[key] = model.new_int_var(home if app["bare"] else 0, home, "")
                    self.there[key] += self.stays[key]
                if not _may_go(app, machine):
                    continue
                fits = min(machine["cpu"] // app["cpu"], machine["memory"] // app["memory"])
                if total and not app["bare"]:
                    self.enters[key] = model.new_int_var(0, min(total, fits), "")
                    self.there[key] += self.enters[key]
                if pending := self.pending[name]:
                    self.lands[key] = model.new_int_var(0, min(pending, fits), "")
                    self.there[key] += self.lands[key]
            own = [self.stays[key] for key in self.stays if key[0] == name]
            own += [self.enters[key] for key in self.enters if key[0] == name]
            model.add(sum(own) == total)
            model.add(sum(v for k, v in self.lands.items() if k[0] == name) <= self.pending[name])

    def begin(self, ends: dict[str, str], at_first: dict[str, list[str]]) -> None:
        """Begin a search where a plan ends.

        Args:
            ends: the node of each pod after the plan.
            at_first: the app and the node of each pod.
        """
        settled, come = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for pod, (app, home) in at_first.items():
            (settled if ends[pod] == home else come)[app, ends[pod]] += 1
        for key, variable in self.stays.items():
            self.model.add_hint(variable, settled[key])
        for key, variable in (*self.enters.items(), *self.lands.items()):
            self.model.add_hint(variable, come[key])
        busy = set(ends.values())
        for node, variable in self.empty.items():
            self.model.add_hint(variable, node not in busy)

    def _keep_room(self, node: Named) -> None:
        """Require that the pods on a node fit, and that a node to empty has none."""
        on = [(app, self.there[name, node["name"]]) for name, app in self.apps.items()]
        empty = self.empty.get(node["name"], 0)
        for resource in ("cpu", "memory"):
            used = sum(app[resource] * many for app, many in on)
            self.model.add(used + node[resource] * empty <= node[resource])

    def _keep_budget(self, app: Named) -> None:
        if app["allowed"] >= 0:
            moving = [many for key, many in self.enters.items() if key[0] == app["name"]]
            self.model.add(sum(moving) <= app["allowed"])

    def _is_any(self, many: Sum) -> Sum:
        """Return a literal that is true if there are pods."""
        found = self.model.new_bool_var("")
        self.model.add(many == 0).only_enforce_if(~found)
        self.model.add(many >= 1).only_enforce_if(found)
        return found

    def _keep_apart(self, app: Named) -> None:
        for node in self.nodes:
            own = self.there[app["name"], node]
            if app["apart"]:
                self.model.add(own <= 1)
            if app["away"]:
                other = self._is_any(self.there[app["away"], node])
                self.model.add(own == 0).only_enforce_if(other)

    def _keep_near(self, app: Named) -> None:
        for zone in self._zones("") if app["near"] else ():
            other = self._is_any(self._in_zone(app["near"], zone))
            self.model.add(self._in_zone(app["name"], zone) == 0).only_enforce_if(~other)

    def _keep_spread(self, app: Named) -> None:
        if not app["skew"]:
            return
        least = self.model.new_int_var(0, 10_000, "")
        for zone in self._zones(app["pool"]):
            self.model.add(self._in_zone(app["name"], zone, app["pool"]) >= least)
        for zone in self._zones(""):
            self.model.add(self._in_zone(app["name"], zone) - least <= app["skew"])

    def _zones(self, pool: str) -> set[str]:
        return {each["zone"] for each in self.nodes.values() if pool in {"", each["pool"]}}

    def _in_zone(self, app: str, zone: str, pool: str = "") -> Sum:
        return sum(
            self.there[app, name]
            for name, each in self.nodes.items()
            if each["zone"] == zone and pool in {"", each["pool"]}
        )

    def _may_be_empty(self) -> Named:
        """Return a literal for each node that has a pod; nodes that are empty stay empty."""
        busy = {node for _, node in self.at_home}
        for (_, node), many in self.there.items():
            if node not in busy:
                self.model.add(many == 0)
        return {node: self.model.new_bool_var("") for node in sorted(busy)}


def _may_go(app: Named, machine: Named) -> bool:
    if machine["tainted"] and not app["tolerates"]:
        return False
    return app["pool"] in {"", machine["pool"]}


def best(question: Named) -> Named:
    """Return the most gain, its bound, and the fewest moves for so much and for as much as ours.

    Args:
        question: the cluster; `landing` for pods that are to land, else nodes are to be emptied;
            how much `ours` gains, and where each pod `ends` by it; the `seconds` that each of both
            searches may take, of `workers`.
    """
    cluster = Cluster(question["cluster"], landing=question["landing"])
    cluster.begin(question["ends"], question["cluster"]["pods"])
    model = cluster.model
    gain = sum((cluster.lands if question["landing"] else cluster.empty).values())
    moves = sum(cluster.enters.values())
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = question["workers"]
    solver.parameters.max_time_in_seconds = question["seconds"]
    began = time.monotonic()
    model.maximize(gain * 100_000 - moves)
    status = solver.solve(model)
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return {"gain": None, "bound": None, "moves": None, "fewest": None, "seconds": 0.0}
    found, bound = solver.value(gain), -int(-solver.best_objective_bound // 100_000)
    answer = {"gain": found, "bound": bound, "moves": solver.value(moves)}
    seconds = time.monotonic() - began
    fewest = answer["moves"]
    if question["ours"] < found:
        model.add(gain >= question["ours"])
        model.minimize(moves)
        status = solver.solve(model)
        is_found = status in {cp_model.OPTIMAL, cp_model.FEASIBLE}
        fewest = solver.value(moves) if is_found else None
    return answer | {"fewest": fewest, "seconds": round(seconds, 1)}


if __name__ == "__main__":
    json.dump(best(json.load(sys.stdin)), sys.stdout)

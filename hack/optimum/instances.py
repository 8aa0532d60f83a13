"""Random clusters with constraints, as plain values that the oracle and the replay read, too."""

# ruff: noqa: PLR2004 - shares of chance

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

_SHAPES = ((4_000, 16_384), (8_000, 32_768), (16_000, 65_536))
_CPU = (100, 200, 250, 500, 750, 1_000, 1_500, 2_000)
_LARGEST_APP = 14


@dataclass(frozen=True)
class App:
    """Equal pods: their requests and constraints.

    Attributes:
        name: of the app, the value of the label `app`.
        cpu: millicores.
        memory: MiB.
        apart: no two pods on a node.
        skew: most difference of pods between zones; 0 for any.
        near: an app that has to have a pod in the zone; empty for none.
        away: an app that may have no pod on the node; empty for none.
        pool: the nodes that it requires; empty for any.
        tolerates: it tolerates the taint.
        allowed: most evictions; -1 for any.
        bare: no controller, so that no pod may move.
    """

    name: str
    cpu: int
    memory: int
    apart: bool = False
    skew: int = 0
    near: str = ""
    away: str = ""
    pool: str = ""
    tolerates: bool = False
    allowed: int = -1
    bare: bool = False


@dataclass(frozen=True)
class Machine:
    """A node.

    Attributes:
        name: of the node.
        cpu: millicores.
        memory: MiB.
        zone: of the node.
        pool: of the node.
        tainted: it has the taint.
    """

    name: str
    cpu: int
    memory: int
    zone: str
    pool: str
    tainted: bool = False


@dataclass
class Instance:
    """A cluster.

    Attributes:
        nodes: by name.
        apps: by name.
        pods: app and node of each pod, by name; an empty node for a pending pod.
    """

    nodes: dict[str, Machine] = field(default_factory=dict)
    apps: dict[str, App] = field(default_factory=dict)
    pods: dict[str, tuple[str, str]] = field(default_factory=dict)

    def plain(self) -> dict[str, object]:
        """Return the cluster as plain values for the oracle."""
        return asdict(self)


def instance(nodes: int, fill: float, seed: int) -> Instance:
    """Return a cluster of so many nodes that is about so full; the same for the same arguments."""
    drawn = random.Random(f"{nodes} {fill} {seed}")  # noqa: S311 - the same cluster each time
    found = Instance()
    for at in range(nodes):
        cpu, memory = drawn.choice(_SHAPES)
        pool = "blue" if drawn.random() < 0.3 else "green"
        name = f"n{at:03}"
        machine = Machine(name, cpu, memory, f"z{at % 3}", pool, drawn.random() < 0.1)
        found.nodes[name] = machine
    place = Placing(found, drawn)
    full = fill * sum(each.cpu for each in found.nodes.values())
    misses = 0
    while place.used < full and misses < 300:
        app = _app(found, drawn)
        found.apps[app.name] = app
        placed = sum(place.put(app) for _ in range(drawn.randint(1, _LARGEST_APP)))
        misses += not placed
    return found


def wanting(found: Instance, seed: int) -> Instance:
    """Return a cluster with pods that are alike and pending; the same for the same arguments.

    Each requests a third to four fifths of the largest node; there is one for five nodes.
    """
    drawn = random.Random(f"{len(found.nodes)} {len(found.pods)} {seed}")  # noqa: S311 - as above
    cpu = int(max(each.cpu for each in found.nodes.values()) * drawn.choice((0.35, 0.55, 0.8)))
    app = App(
        name="wanted",
        cpu=cpu,
        memory=cpu * drawn.choice((1, 2, 4)),
        apart=drawn.random() < 0.3,
        skew=2 if drawn.random() < 0.3 else 0,
        tolerates=drawn.random() < 0.2,
    )
    pods = {f"wanted-{at:03}": (app.name, "") for at in range(max(1, len(found.nodes) // 5))}
    return Instance(found.nodes, found.apps | {app.name: app}, found.pods | pods)


def _app(found: Instance, drawn: random.Random) -> App:
    cpu = drawn.choice(_CPU)
    kind = drawn.random()
    others = [each.name for each in found.apps.values() if not (each.near or each.away)]
    return App(
        name=f"a{len(found.apps):03}",
        cpu=cpu,
        memory=int(cpu * drawn.choice((1, 2, 4, 6))),
        apart=kind < 0.15,
        skew=drawn.choice((1, 2)) if 0.1 <= kind < 0.35 else 0,
        near=drawn.choice(others) if others and 0.35 <= kind < 0.42 else "",
        away=drawn.choice(others) if others and 0.42 <= kind < 0.49 else "",
        pool=drawn.choice(("blue", "green")) if drawn.random() < 0.15 else "",
        tolerates=drawn.random() < 0.2,
        allowed=drawn.randint(1, 6) if drawn.random() < 0.25 else -1,
        bare=drawn.random() < 0.02,
    )


class Placing:
    """Pods as they are placed, one by one, where all demands are met."""

    def __init__(self, found: Instance, drawn: random.Random) -> None:
        """Begin with the pods of an instance."""
        self._found = found
        self._drawn = drawn
        self.used = 0
        self.on: dict[str, dict[str, int]] = {name: {} for name in found.nodes}
        for app, node in found.pods.values():
            self.add(app, node)

    def add(self, app: str, node: str, times: int = 1) -> None:
        """Count a pod on a node; -1 takes it away."""
        if node:
            self.on[node][app] = self.on[node].get(app, 0) + times
            self.used += self._found.apps[app].cpu * times

    def put(self, app: App) -> bool:
        """Place a pod at random; return whether there was a node for it."""
        names = [name for name in self._found.nodes if not any(self.refusals(app, name))]
        if not names:
            return False
        node = self._drawn.choice(names)
        self._found.pods[f"{app.name}-{len(self._found.pods):04}"] = (app.name, node)
        self.add(app.name, node)
        return True

    def refusals(self, app: App, node: str) -> Iterator[str]:
        """Yield the reasons that keep a pod from a node."""
        machine, on = self._found.nodes[node], self.on[node]
        apps = self._found.apps
        if sum(apps[name].cpu * n for name, n in on.items()) + app.cpu > machine.cpu:
            yield "no cpu"
        if sum(apps[name].memory * n for name, n in on.items()) + app.memory > machine.memory:
            yield "no memory"
        if machine.tainted and not app.tolerates:
            yield "tainted"
        if app.pool and app.pool != machine.pool:
            yield "another pool"
        if app.apart and on.get(app.name):
            yield "not apart"
        if app.away and on.get(app.away):
            yield f"{app.away} is there"
        if any(n and apps[name].away == app.name for name, n in on.items()):
            yield "not wanted"
        if app.near and not self._in_zone(app.near, machine.zone):
            yield f"{app.near} is not near"
        if app.skew and self._in_zone(app.name, machine.zone) + 1 - self._least(app) > app.skew:
            yield "too many in the zone"

    def _in_zone(self, app: str, zone: str, pool: str = "") -> int:
        return sum(
            self.on[name].get(app, 0)
            for name, each in self._found.nodes.items()
            if each.zone == zone and pool in {"", each.pool}
        )

    def _least(self, app: App) -> int:
        """Return the fewest pods of a zone, among zones with a node that the app may use."""
        nodes = self._found.nodes.values()
        zones = {each.zone for each in nodes if app.pool in {"", each.pool}}
        return min(self._in_zone(app.name, zone, app.pool) for zone in zones)

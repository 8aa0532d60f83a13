"""The move windows of pods: of the configuration, of the namespace and of the pod itself.

The windows of the pod, of its namespace and of the configuration all have to be open. Of the
configuration's windows count those whose selectors match the pod's namespace and node; one open
window is enough. A pod without windows may be moved at any time (docs/adr/0079).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from cachetools import LRUCache

from reserver.base.schedule import Occurrence, Schedule
from reserver.cluster.labels import Labels
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.errors import InvalidInput
from reserver.k8s.objects.move_windows import MoveWindow, parse
from reserver.k8s.objects.pod_annotations import MOVE_WINDOW_ANNOTATION
from reserver.k8s.objects.times import show_moment

LOOK_AGAIN_S = 60.0
"""Most seconds between looks at the window of a waiting move: annotations may change."""

_MOST_LOOKS = 64
"""Most occurrences that are computed in the search for a moment at which all windows are open; the
search continues at its last moment. Annotations decide the number needed, each takes 0.2 ms."""

_AHEAD_S = 366 * 86_400.0
"""Seconds ahead at which the search stops: no move waits that long."""

_MOST_KNOWN = 4096


class WindowState(NamedTuple):
    """The state of a pod's move windows.

    Attributes:
        opens_at: the next opening, unix seconds; 0 if open now, infinite if never or unknown.
        closes_at: the end of that opening, unix seconds.
        why: why the pod may not be moved now, in words; empty if it may.
        is_sure: the windows are open at `opens_at`; else the search stopped there.
    """

    opens_at: float = 0.0
    closes_at: float = inf
    why: str = ""
    is_sure: bool = True


ALWAYS = WindowState()
UNKNOWN = WindowState(inf, 0.0, "its move window cannot be judged")

_Demands = tuple[tuple[Schedule, ...], ...]
"""Schedules; at least one of each inner tuple has to be open."""


class _Known(NamedTuple):
    since: float
    until: float
    state: WindowState


@dataclass(frozen=True, slots=True)
class _Named:
    """The windows of a pod from one source, and the name of the source."""

    where: str
    schedules: tuple[Schedule, ...]


class MoveWindows:
    """The move windows of all pods.

    Attributes:
        configured: the windows of the configuration.
    """

    def __init__(self, snapshot: Snapshot, configured: tuple[MoveWindow, ...] = ()) -> None:
        """Begin with an empty cache."""
        self.configured = configured
        self._snapshot = snapshot
        self._known: LRUCache[_Demands, _Known] = LRUCache(_MOST_KNOWN)

    def of(self, pod: Pod, now: float) -> WindowState:
        """Return the state of a pod's windows at a moment, in unix seconds."""
        try:
            named = list(self._concerning(pod))
        except InvalidInput as exc:
            return WindowState(inf, 0.0, str(exc))
        if not named:
            return ALWAYS
        state = self._state(tuple(each.schedules for each in named), now)
        if not state.opens_at:
            return state
        where = " and ".join(each.where for each in named)
        how = "opens at" if state.is_sure else "does not open before"
        opens = f"{how} {show_moment(state.opens_at)}" if state.opens_at < inf else "never opens"
        return state._replace(why=f"its move window {opens}, by {where}")

    def _concerning(self, pod: Pod) -> Iterator[_Named]:
        """Yield the windows of a pod by source.

        Raises:
            InvalidInput: an annotation is invalid.
        """
        namespace = pod.name.namespace
        annotated = self._snapshot.move_windows.get(namespace, "")
        for source, text in (("pod", pod.move_window), ("namespace", annotated)):
            if text:
                where = f"annotation {MOVE_WINDOW_ANNOTATION} of the {source}"
                try:
                    schedule = parse(text)
                except InvalidInput as exc:
                    raise exc.under(where) from exc
                yield _Named(where, (schedule,))
        labels = self._snapshot.namespaces.get(namespace, {})
        leaving = self._snapshot.labels_of(pod.node)
        if found := tuple(_matching(self.configured, labels, leaving)):
            yield _Named("the configuration", found)

    def _state(self, demands: _Demands, now: float) -> WindowState:
        known = self._known.get(demands)
        if known is None or not known.since <= now < known.until:
            state = judge(demands, now)
            until = state.opens_at or state.closes_at
            self._known[demands] = known = _Known(now, until, state)
        return known.state


def judge(demands: _Demands, now: float) -> WindowState:
    """Return the state of all demands at a moment, in unix seconds."""
    at = now
    for _ in range(max(1, _MOST_LOOKS // max(1, sum(map(len, demands))))):
        nearest = [_nearest(schedules, at) for schedules in demands]
        if None in nearest:
            return WindowState(inf, 0.0)
        found = [each for each in nearest if each is not None]
        latest = max(each.start for each in found)
        if latest <= at:
            closes_at = min(each.end for each in found)
            return WindowState(0.0 if at == now else at, closes_at)
        at = latest
        if at > now + _AHEAD_S:
            break
    return WindowState(at, 0.0, is_sure=False)


def _nearest(schedules: tuple[Schedule, ...], at: float) -> Occurrence | None:
    """Return the current occurrence that ends last, or else the next one; None without one."""
    found = [each for each in (schedule.occurrence(at) for schedule in schedules) if each]
    open_ = [each for each in found if each.start <= at]
    if open_:
        return max(open_, key=lambda each: each.end)
    return min(found, default=None, key=lambda each: each.start)


def _matching(
    windows: tuple[MoveWindow, ...], namespace: Labels, node: Labels
) -> Iterator[Schedule]:
    for each in windows:
        if each.namespaces.matches(namespace) and each.nodes.matches(node):
            yield each.schedule

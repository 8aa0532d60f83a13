"""The codec of MaintenanceWindow objects of reserver.io/v1alpha1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from reserver.base.schedule import Schedule
from reserver.cluster.labels import NOTHING, Selector
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects import names
from reserver.k8s.objects.limits import Int64, check_number
from reserver.k8s.objects.objects import (
    CustomResource,
    ObjectKind,
    StrictStruct,
    decode,
    decode_or_none,
)
from reserver.k8s.objects.schedules import ScheduleFields, read_schedule
from reserver.k8s.objects.selectors import StrictSelector, label_selector
from reserver.k8s.objects.times import parse_duration, parse_moment, show_moment
from reserver.maintenance.decide import NodeProgress
from reserver.maintenance.model import (
    DEFAULT_DRAIN_S,
    MOST_DRAIN_S,
    MOST_LENGTH_S,
    MaintenancePeriod,
    MostUnavailable,
    NodePhase,
    Window,
    WindowPhase,
)
from reserver.stores.object.codec import API_VERSION

KIND = "MaintenanceWindow"
COLLECTION = f"/apis/{API_VERSION}/maintenancewindows"
WINDOW = ObjectKind(API_VERSION, KIND)

MOST_WINDOWS = 100
"""Most windows that are read: each window is compared with every node."""

MOST_NODES = 500
"""Most node names in a window."""

MOST_TERMS = 16
"""Most labels and expressions in a window's node selector."""

MOST_VALUES = 64
"""Most values in one expression."""

MOST_BYTES = 262_144
"""Most bytes of a spec; each spec that the schema allows is shorter."""

MOST_SHOWN = 200
"""Most nodes in a window's status, the nodes in hand first."""

_LAST_SHOWN = (NodePhase.PLANNED, NodePhase.WAITING, NodePhase.DONE)


class _Spec(StrictStruct, frozen=True):
    start: str | None = None
    end: str | None = None
    schedule: ScheduleFields | None = None
    nodes: tuple[str, ...] = ()
    node_selector: StrictSelector | None = None
    drain_before: str | None = None
    max_unavailable: int | str = 1
    surge: bool = False
    allow_unseated: bool = False
    delete_empty_dir_data: bool = False


class NodeStatusObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node in ``status.nodes``."""

    name: str
    phase: str
    message: str = ""


class WindowStatusObject(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """The whole status subresource, as Reserver writes it."""

    phase: str
    message: str = ""
    start: str = ""
    end: str = ""
    observed_generation: Int64 = 0
    progress: str = ""
    nodes: tuple[NodeStatusObject, ...] = ()


class WindowObject(CustomResource, frozen=True):
    """A MaintenanceWindow on the wire."""

    def said(self) -> WindowStatusObject | None:
        """Return the status; None if empty, or if Reserver did not write the status."""
        return decode_or_none(WindowStatusObject, self.status)


def path(name: str) -> str:
    """Return the path of a MaintenanceWindow."""
    return f"{COLLECTION}/{name}"


def read_object(item: WindowObject) -> Window:
    """Return the window of an object.

    Raises:
        InvalidInput: a field is invalid; the error carries its path.
    """
    with under("spec"):
        if len(item.spec) > MOST_BYTES:
            problem = f"{len(item.spec)} bytes are too many for a window"
            raise InvalidInput("", problem, f"keep it under {MOST_BYTES}")
        spec = decode(_Spec, item.spec)
        check_number(len(spec.nodes), "nodes", MOST_NODES, "nodes")
        for index, node in enumerate(spec.nodes):
            names.check_subdomain(node, f"nodes[{index}]", "a node's name")
        if not spec.nodes and spec.node_selector is None:
            remedy = "list nodes, or write a nodeSelector; {} selects all"
            raise InvalidInput("nodes", "is empty", remedy)
        period, schedule = _times(spec)
        return Window(
            name=item.metadata.name,
            uid=item.metadata.uid,
            period=period,
            schedule=schedule,
            nodes=frozenset(spec.nodes),
            selector=_selector(spec.node_selector),
            drain_s=_drain_s(spec.drain_before),
            most_unavailable=_most_unavailable(spec.max_unavailable),
            surges=spec.surge,
            allows_unseated=spec.allow_unseated,
            deletes_empty_dirs=spec.delete_empty_dir_data,
        )


def _times(spec: _Spec) -> tuple[MaintenancePeriod, Schedule | None]:
    """Return the period and the schedule; the period of a schedule is its first occurrence."""
    if spec.schedule is not None:
        if spec.start is not None or spec.end is not None:
            raise InvalidInput("schedule", "has its own times", "leave out start and end")
        return _scheduled(spec.schedule)
    if spec.start is None or spec.end is None:
        missing = "start" if spec.start is None else "end"
        raise InvalidInput(missing, "is not written", "write start and end, or a schedule")
    with under("start"):
        start = parse_moment(spec.start)
    with under("end"):
        end = parse_moment(spec.end)
    if not start < end <= start + MOST_LENGTH_S:
        raise InvalidInput("end", f"{spec.end} is out of range", "write up to 720h after the start")
    return MaintenancePeriod(start, end), None


def _scheduled(written: ScheduleFields) -> tuple[MaintenancePeriod, Schedule]:
    with under("schedule"):
        schedule = read_schedule(written)
        if schedule.duration > MOST_LENGTH_S:
            problem = f"{written.duration} is out of range"
            raise InvalidInput("duration", problem, "write 720h at most")
        first = schedule.occurrence(0.0)
        if first is None:
            raise InvalidInput("until", "is before the first start", "write a later end, or none")
    return MaintenancePeriod(*first), schedule


def _drain_s(text: str | None) -> float:
    if text is None:
        return DEFAULT_DRAIN_S
    with under("drainBefore"):
        seconds = parse_duration(text)
    if seconds > MOST_DRAIN_S:
        raise InvalidInput("drainBefore", f"{text} is out of range", "write 0s to 168h")
    return seconds


def _most_unavailable(written: int | str) -> MostUnavailable:
    remedy = "write a number of nodes from 1 on, or 1% to 100%"
    path = "maxUnavailable"
    if isinstance(written, int):
        if not 1 <= written <= 2**31 - 1:
            raise InvalidInput(path, f"{written} is out of range", remedy)
        return MostUnavailable(written)
    number = written.removesuffix("%")
    is_number = number.isascii() and number.isdecimal() and len(number) <= len("100")
    if number == written or not is_number or not 1 <= int(number) <= 100:  # noqa: PLR2004 - percent
        raise InvalidInput(path, f"{shorten(written)!r} is no share of the nodes", remedy)
    return MostUnavailable(int(number), is_percent=True)


def _selector(written: StrictSelector | None) -> Selector:
    if written is None:
        return NOTHING
    labels, expressions = written.match_labels or {}, written.match_expressions or ()
    with under("nodeSelector"):
        check_number(len(labels) + len(expressions), "", MOST_TERMS, "labels and expressions")
        for index, each in enumerate(expressions):
            values = len(each.values or ())
            check_number(values, f"matchExpressions[{index}]", MOST_VALUES, "values")
        selector = label_selector(written)
        if any(term == NOTHING.requirements[0] for term in selector.requirements):
            remedy = "write In or NotIn with values, Exists or DoesNotExist without"
            raise InvalidInput("matchExpressions", "some expression selects nothing", remedy)
    return selector


def show_status(
    window: Window, now: float, progress: Sequence[NodeProgress], generation: int
) -> WindowStatusObject:
    """Return the status of a window for one generation of its spec.

    Args:
        window: with the period of the current or the next occurrence.
        now: unix seconds.
    """
    phase = phase_of(window, now)
    comes = phase is not WindowPhase.OVER or window.schedule is None
    start, end = map(show_moment, window.period) if comes else ("", "")
    counts = Counter(each.phase for each in progress)
    shown = sorted(progress, key=lambda each: (each.phase in _LAST_SHOWN, each.node))[:MOST_SHOWN]
    message = "" if progress or phase is WindowPhase.OVER else "no node is selected"
    return WindowStatusObject(
        phase=phase,
        message=message or ", ".join(f"{n} {each}" for each in NodePhase if (n := counts[each])),
        start=start,
        end=end,
        observed_generation=generation,
        progress=f"{counts[NodePhase.DONE]}/{len(progress)}" if progress else "",
        nodes=tuple(NodeStatusObject(*each) for each in shown),
    )


def refused(problem: InvalidInput, generation: int) -> WindowStatusObject:
    """Return the status of a window whose spec is invalid."""
    return WindowStatusObject(
        phase=WindowPhase.INVALID, message=str(problem), observed_generation=generation
    )


def phase_of(window: Window, now: float) -> WindowPhase:
    """Return the phase of a window; only the time decides."""
    start, end = window.period
    if now >= end:
        return WindowPhase.OVER
    if now >= start:
        return WindowPhase.ACTIVE
    return WindowPhase.DRAINING if now >= window.drain_at else WindowPhase.PLANNED

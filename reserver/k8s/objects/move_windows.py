"""Windows for moves of pods, as users write them: text in an annotation, or a list in a file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import msgspec

from reserver.base.schedule import Schedule
from reserver.cluster.labels import EVERYTHING, Selector, equals
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects.names import is_label_key
from reserver.k8s.objects.objects import encode, from_msgspec
from reserver.k8s.objects.pod_annotations import MOST_MOVE_WINDOW
from reserver.k8s.objects.schedules import ScheduleFields, read_schedule

MOST_WINDOWS = 50
MOST_LABELS = 16

_CRON_WORDS = 5
_EXAMPLE = "write cron, duration and zone, such as 0 22 * * * 6h Europe/Berlin"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveWindow:
    """A time in which some pods may be moved.

    Attributes:
        schedule: times of the window.
        namespaces: selects the namespaces of the pods.
        nodes: selects the nodes that these pods leave.
    """

    schedule: Schedule
    namespaces: Selector = EVERYTHING
    nodes: Selector = EVERYTHING


class _Labels(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    match_labels: dict[str, str] = {}

    def selector(self) -> Selector:
        if len(self.match_labels) > MOST_LABELS:
            problem = f"{len(self.match_labels)} labels are too many"
            raise InvalidInput("matchLabels", problem, f"write at most {MOST_LABELS}")
        for key in self.match_labels:
            if not is_label_key(key):
                problem = f"{shorten(key)!r} is no key of a label"
                raise InvalidInput("matchLabels", problem, "write a key such as pool")
        return equals(self.match_labels)


class _Window(ScheduleFields, omit_defaults=True):
    namespace_selector: _Labels | None = None
    node_selector: _Labels | None = None


def parse(text: str) -> Schedule:
    """Return the schedule of ``CRON DURATION [ZONE]``.

    Raises:
        InvalidInput: the text is not a schedule; the path is empty.
    """
    found = _parsed(text)
    if isinstance(found, InvalidInput):
        raise found
    return found


@lru_cache(16_384)
def _parsed(text: str) -> Schedule | InvalidInput:
    """Return a schedule or its error; errors are cached, as broken texts are read repeatedly."""
    words = text.split()
    if len(text) > MOST_MOVE_WINDOW or len(words) not in {_CRON_WORDS + 1, _CRON_WORDS + 2}:
        return InvalidInput("", f"{shorten(text)!r} is no window", _EXAMPLE)
    cron, (duration, *zone) = " ".join(words[:_CRON_WORDS]), words[_CRON_WORDS:]
    try:
        return read_schedule(
            ScheduleFields(cron=cron, duration=duration, time_zone=(*zone, "UTC")[0])
        )
    except InvalidInput as exc:
        return InvalidInput("", f"{shorten(text)!r}: {exc.path}: {exc.problem}", exc.remedy)


def read_list(written: object) -> str:
    """Return a list of windows from a file as JSON, the input of `windows`.

    Raises:
        InvalidInput: a window is not valid; the error carries its path.
    """
    try:
        found = msgspec.convert(written, list[_Window], strict=True)
    except msgspec.ValidationError as exc:
        raise from_msgspec(exc, "write a list of windows, each with cron and duration") from exc
    text = encode(found).decode()
    windows(text)
    return text


@lru_cache(4)
def windows(text: str) -> tuple[MoveWindow, ...]:
    """Return the windows of a list in JSON; a list from a file is cached, as reading takes 0.1 s.

    Raises:
        InvalidInput: a window is not valid; the error carries its path.
    """
    try:
        found = msgspec.json.decode(text, type=list[_Window])
    except msgspec.DecodeError as exc:
        raise from_msgspec(exc, 'write e.g. [{"cron": "0 22 * * *", "duration": "6h"}]') from exc
    return _read(found)


def check(flag: str, text: str) -> None:
    """Refuse a text that is not a list of windows; `flag` is the error's path."""
    try:
        windows(text)
    except InvalidInput as exc:
        raise exc.under(flag) from exc


def show_list(text: str) -> list[object]:
    """Return the list of a text from `read_list`."""
    shown: list[object] = msgspec.json.decode(text)
    return shown


def _read(found: list[_Window]) -> tuple[MoveWindow, ...]:
    if len(found) > MOST_WINDOWS:
        raise InvalidInput(
            "", f"{len(found)} windows are too many", f"write at most {MOST_WINDOWS}"
        )
    read = []
    for index, each in enumerate(found):
        with under(f"[{index}]"):
            schedule = read_schedule(each)
            with under("namespaceSelector"):
                namespaces = (each.namespace_selector or _Labels()).selector()
            with under("nodeSelector"):
                nodes = (each.node_selector or _Labels()).selector()
        read.append(MoveWindow(schedule=schedule, namespaces=namespaces, nodes=nodes))
    return tuple(read)

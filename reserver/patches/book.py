"""All SchedPatches of a cluster, which of them a new pod gets, and the marks of a patched pod."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reserver.cluster.labels import Labels
from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import decode, encode
from reserver.patches.model import Conflict, PatchName, SchedPatch, Scheduling, merged
from reserver.patches.slots import PatchSlots

MOST_PATCHES = 64
"""Patches of one namespace that count, the first by name: each is compared with each new pod."""

MOST_MERGED = 16
"""Patches that one pod gets."""

MOST_EARLY = 10_000
"""Marks of one namespace's pods that are kept until its patches are known."""


class Mark(NamedTuple):
    """A pod's record of a patch that it has: the patch's name and UID, and the slot."""

    patch: str
    uid: str
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPod:
    """A pod that is being created, as far as patches look at it.

    Attributes:
        name: for messages; it may have none yet.
        scheduling: what it says of where it may go.
        marks: of the patches that it says it has: it may be asked about for a second time.
    """

    namespace: str
    name: str = ""
    labels: Labels = field(default_factory=dict)
    scheduling: Scheduling = field(default_factory=Scheduling)
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchVerdict:
    """The verdict on a new pod.

    Attributes:
        scheduling: what it says from now on.
        marks: of the patches that it has.
        patched: the patches that have just been merged into it.
    """

    scheduling: Scheduling
    marks: tuple[Mark, ...] = ()
    patched: tuple[PatchName, ...] = ()


class PatchEntry:
    """A patch with its slots.

    Attributes:
        patch: what was read last.
        slots: its count.
        conflict: the last one, and with which pod; None if there was none.
        is_suspended: what it says now cannot be read, so it patches none; its count goes on.
    """

    def __init__(self, patch: SchedPatch, slots: PatchSlots) -> None:
        """Begin without conflicts."""
        self.patch = patch
        self.slots = slots
        self.conflict: tuple[str, Conflict] | None = None
        self.is_suspended = False


class Book:
    """All readable patches, and what each means for new pods."""

    def __init__(self, identity: str, changed: Callable[[PatchName], None]) -> None:
        """Begin with none.

        Args:
            identity: names the process, for the slots that it may hand out.
            changed: called with each patch whose status may have to be written.
        """
        self._identity = identity
        self._changed = changed
        self._entries: dict[str, dict[str, PatchEntry]] = {}
        self._order: dict[str, list[str]] = {}
        self._early: dict[str, set[Mark]] | None = {}

    def put(self, patch: SchedPatch) -> PatchEntry:
        """Take a patch as it is now; return its entry."""
        here = self._entries.setdefault(patch.name.namespace, {})
        entry = here.get(patch.name.name)
        if entry is None:
            insort(self._order.setdefault(patch.name.namespace, []), patch.name.name)
        if entry is None or entry.patch.uid != patch.uid:
            entry = here[patch.name.name] = PatchEntry(
                patch, PatchSlots(self._identity, patch.max_count)
            )
            for mark in (self._early or {}).get(patch.name.namespace, ()):
                if mark.uid == patch.uid:
                    entry.slots.appeared(mark.slot)
        elif entry.patch != patch:
            entry.conflict = None
        entry.patch, entry.slots.max_count, entry.is_suspended = patch, patch.max_count, False
        return entry

    def suspend(self, name: PatchName) -> None:
        """Note that what a patch says now cannot be read."""
        entry = self.get(name)
        if entry is not None:
            entry.is_suspended = True

    def drop(self, name: PatchName) -> None:
        """Forget a patch that is gone."""
        here = self._entries.get(name.namespace, {})
        if here.pop(name.name, None) is not None:
            self._order[name.namespace].remove(name.name)
            if not here:
                del self._entries[name.namespace], self._order[name.namespace]

    def get(self, name: PatchName) -> PatchEntry | None:
        """Return a patch with its slots."""
        return self._entries.get(name.namespace, {}).get(name.name)

    def names(self) -> tuple[PatchName, ...]:
        """Return the names of all patches."""
        return tuple(
            PatchName(namespace, name) for namespace, here in self._entries.items() for name in here
        )

    def has_any(self, namespace: str) -> bool:
        """Return whether a namespace has patches."""
        return namespace in self._entries

    def complete(self) -> None:
        """Note that all patches and all pods have been listed once."""
        self._early = None

    def pod_seen(self, namespace: str, marks: tuple[Mark, ...]) -> None:
        """Note that a pod with these marks exists."""
        for mark in marks:
            entry = self._entries.get(namespace, {}).get(mark.patch)
            if entry is not None and entry.patch.uid == mark.uid:
                if entry.slots.appeared(mark.slot):
                    self._changed(entry.patch.name)
            elif self._early is not None:
                known = self._early.setdefault(namespace, set())
                if len(known) < MOST_EARLY:
                    known.add(mark)

    def decide(self, pod: NewPod, now: float, *, is_dry_run: bool) -> PatchVerdict:
        """Return what becomes of a new pod, and hand out the slots that this takes.

        Patches are merged in the order of their names. One that conflicts with the pod, or with
        what a patch before it demands, is left out, and takes no slot.

        Args:
            now: unix seconds.
            is_dry_run: it will not be created: no slot is handed out, and it gets no marks.
        """
        scheduling = pod.scheduling
        patched: list[PatchName] = []
        # Asked about again, as another webhook has changed the pod: it keeps what it has.
        marks = [mark for mark in dict.fromkeys(pod.marks) if self._is_out(pod.namespace, mark)]
        has = {mark.patch for mark in marks}
        for entry in self._matching(pod, now):
            if max(len(marks), len(patched)) >= MOST_MERGED:
                break
            patch, slots = entry.patch, entry.slots
            slots.lapse(now)
            if patch.name.name in has:
                continue
            with_it = merged(scheduling, patch.injected)
            if isinstance(with_it, Conflict):
                if not is_dry_run:
                    self._note(entry, pod, with_it)
                continue
            if is_dry_run:
                if slots.is_spent:
                    continue
            elif (slot := slots.take(now)) is None:
                continue
            else:
                marks.append(Mark(patch.name.name, patch.uid, slot))
                self._changed(patch.name)
            scheduling = with_it
            patched.append(patch.name)
        return PatchVerdict(scheduling=scheduling, marks=tuple(marks), patched=tuple(patched))

    def awaited(self, pod: NewPod, now: float) -> tuple[PatchName, ...]:
        """Return the patches that have no slot for a pod yet, but may have after a write."""
        return tuple(
            entry.patch.name
            for entry in self._matching(pod, now)
            if entry.slots.may_have_more and not entry.slots.has_left
        )

    def _matching(self, pod: NewPod, now: float) -> Iterator[PatchEntry]:
        here: Mapping[str, PatchEntry] = self._entries.get(pod.namespace, {})
        for name in self._order.get(pod.namespace, ())[:MOST_PATCHES]:
            entry = here[name]
            if not entry.is_suspended and entry.patch.matches(pod.labels, now):
                yield entry

    def _is_out(self, namespace: str, mark: Mark) -> bool:
        entry = self._entries.get(namespace, {}).get(mark.patch)
        if entry is None or entry.patch.uid != mark.uid:
            return False
        return entry.slots.is_out(mark.slot)

    def _note(self, entry: PatchEntry, pod: NewPod, conflict: Conflict) -> None:
        name = pod.name or "a pod without a name yet"
        if entry.conflict is None or entry.conflict[1] != conflict:
            entry.conflict = name, conflict
            self._changed(entry.patch.name)


_MARKS_BYTES = MOST_MERGED * 400
_MARK_PARTS = 3
_MOST_DIGITS = 6


def show_marks(marks: Iterable[Mark]) -> str:
    """Return marks as the annotation `MARKS_ANNOTATION` has them."""
    return encode([f"{each.patch}/{each.uid}/{each.slot}" for each in marks]).decode()


def read_marks(text: str | None) -> tuple[Mark, ...]:
    """Return what an annotation says of patches; nothing if Reserver did not write it."""
    if text is None or len(text) > _MARKS_BYTES:
        return ()
    try:
        written = decode(list[str], text.encode(errors="replace"))
    except InvalidInput:
        return ()
    found = []
    for each in written[:MOST_MERGED]:
        parts = each.split("/")
        if len(parts) == _MARK_PARTS and parts[2].isdecimal() and len(parts[2]) <= _MOST_DIGITS:
            found.append(Mark(parts[0], parts[1], int(parts[2])))
    return tuple(found)

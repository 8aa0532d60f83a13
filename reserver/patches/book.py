"""All SchedPatches of a cluster, the decision on a new pod, and the marks of a patched pod."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reserver.cluster.labels import Labels
from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import decode, encode
from reserver.patches.codec import MOST_PODS
from reserver.patches.model import Conflict, PatchName, SchedPatch, Scheduling, merged
from reserver.patches.slots import PatchSlots

MOST_PATCHES = 64
"""Most patches of one namespace that count, first by name: each is compared with each new pod."""

MOST_MERGED = 16
"""Most patches of one pod."""

MOST_EARLY = 10_000
"""Most marks of one namespace's pods that are kept until its patches are listed."""


class Mark(NamedTuple):
    """A pod's record of one of its patches: the patch's name and UID, and the slot."""

    patch: str
    uid: str
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPod:
    """The fields of a new pod that patches depend on.

    Attributes:
        name: the name in messages; may be empty, as it may be generated later.
        scheduling: its scheduling fields.
        marks: its marks: the webhook may be called for a pod twice.
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
        scheduling: its new scheduling fields.
        marks: the marks of its patches.
        patched: the patches that were merged in this call.
    """

    scheduling: Scheduling
    marks: tuple[Mark, ...] = ()
    patched: tuple[PatchName, ...] = ()


class PatchEntry:
    """A patch with its slots.

    Attributes:
        patch: the last valid version.
        slots: its slots.
        conflict: the last conflict, with the pod's name; None without one.
        is_suspended: its present spec is invalid, so it patches no pod; its slots stay.
    """

    def __init__(self, patch: SchedPatch, slots: PatchSlots) -> None:
        """Begin without conflicts."""
        self.patch = patch
        self.slots = slots
        self.conflict: tuple[str, Conflict] | None = None
        self.is_suspended = False


class Book:
    """All valid patches, and the decisions on new pods."""

    def __init__(self, identity: str, changed: Callable[[PatchName], None]) -> None:
        """Begin without patches.

        Args:
            identity: the name of the process, for the slots that it may hand out.
            changed: called with each patch whose status may have to be written.
        """
        self._identity = identity
        self._changed = changed
        self._entries: dict[str, dict[str, PatchEntry]] = {}
        self._order: dict[str, list[str]] = {}
        self._early: dict[str, set[Mark]] | None = {}

    def put(self, patch: SchedPatch) -> PatchEntry:
        """Store a new version of a patch; return its entry."""
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
        """Suspend a patch whose present spec is invalid."""
        entry = self.get(name)
        if entry is not None:
            entry.is_suspended = True

    def drop(self, name: PatchName) -> None:
        """Remove a deleted patch."""
        here = self._entries.get(name.namespace, {})
        if here.pop(name.name, None) is not None:
            self._order[name.namespace].remove(name.name)
            if not here:
                del self._entries[name.namespace], self._order[name.namespace]

    def get(self, name: PatchName) -> PatchEntry | None:
        """Return the entry of a patch; None without one."""
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
        """Drop the early marks, as all patches and pods have been listed once."""
        self._early = None

    def pod_seen(self, namespace: str, marks: tuple[Mark, ...]) -> None:
        """Count the slots of a pod with these marks as spent."""
        changed: dict[PatchName, None] = {}
        for mark in marks:
            entry = self._entries.get(namespace, {}).get(mark.patch)
            if entry is not None and entry.patch.uid == mark.uid:
                if entry.slots.appeared(mark.slot):
                    changed[entry.patch.name] = None
            elif self._early is not None:
                known = self._early.setdefault(namespace, set())
                if len(known) < MOST_EARLY:
                    known.add(mark)
        for name in changed:  # Each call compares all slots of the patch.
            self._changed(name)

    def decide(self, pod: NewPod, now: float, *, is_dry_run: bool) -> PatchVerdict:
        """Return the verdict on a new pod, and hand out the slots of its patches.

        Patches are merged in the order of their names. A patch that conflicts with the pod, or with
        an earlier patch, is left out, and takes no slot.

        Args:
            now: unix seconds.
            is_dry_run: the pod will not be created: no slot is handed out, and no mark is added.
        """
        scheduling = pod.scheduling
        patched: list[PatchName] = []
        # A second call, as another webhook has changed the pod: its patches stay.
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
        """Return a pod's patches that have no slot now, but may get some by a status write."""
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
    """Return the text of the annotation `MARKS_ANNOTATION` for marks."""
    return encode([f"{each.patch}/{each.uid}/{each.slot}" for each in marks]).decode()


def read_marks(text: str | None) -> tuple[Mark, ...]:
    """Return the marks of an annotation, without those that Reserver cannot have written.

    Whoever may edit a pod may forge marks. Slots are spent for good, even of pods that are gone and
    beyond a count that was lowered; so only the greatest count bounds them.
    """
    if text is None or len(text) > _MARKS_BYTES:
        return ()
    try:
        written = decode(list[str], text.encode(errors="replace"))
    except InvalidInput:
        return ()
    found = []
    for each in written[:MOST_MERGED]:
        parts = each.split("/")
        if len(parts) != _MARK_PARTS:
            continue
        patch, uid, slot = parts
        if slot.isdecimal() and len(slot) <= _MOST_DIGITS and int(slot) < MOST_PODS:
            found.append(Mark(patch, uid, int(slot)))
    return tuple(found)

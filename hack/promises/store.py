"""Judges that the store keeps the manager's entries until their end."""

from __future__ import annotations

from collections.abc import Iterator

from hack.promises.case import Case
from hack.promises.entries import Entry, Ref, read_key
from hack.promises.history import Write
from hack.promises.life import Life
from hack.promises.report import Kind, Violation


def reservation_lost(case: Case) -> Iterator[Violation]:
    """Yield the entries that vanished, though nobody removed them and they were not over."""
    manager = case.world.history.manager
    if manager is None:
        return
    for life in case.world.lives:
        # Whoever deletes a whole ConfigMap is not Reserver.
        if life.gone is None or life.deleted or life.in_gap or life.goes_on:
            continue
        if (
            _is_over(case, life)
            or _is_moved(case, life)
            or _may_be_claimed_unseen(case, life)
            or any(_explains(case, write, life) for write in manager)
        ):
            continue
        broken = bool(life.entry.broken)
        yield Violation(
            kind=Kind.EDIT_VANISHED if broken else Kind.RESERVATION_LOST,
            revision=life.gone.revision,
            at=life.gone.at,
            node=life.node,
            entry=str(life.ref),
            sums={"owners": " ".join(sorted(life.entry.owners)), "expires": life.expires or ""},
            text="gone from the store, not expired, idle, claimed or removed by the manager",
        )


def _is_over(case: Case, life: Life) -> bool:
    assert life.gone is not None  # noqa: S101 - for mypy
    if life.comes_again:
        return False
    if case.may_end(life) <= life.gone.at + case.rules.grace_s:
        return True
    claims = case.claims.get(life, ())
    before = {c.pod.uid for c in claims if c.moment.revision < life.gone.revision}
    is_claimed = len(before) >= life.entry.slots and not life.entry.reusable
    return is_claimed and not life.entry.broken


def _is_moved(case: Case, life: Life) -> bool:
    """Return whether the same stood elsewhere when an entry went, moved there from its ref."""
    assert life.gone is not None  # noqa: S101 - for mypy
    same = case.world.lives_called[life.name]
    return any(x.ref != life.ref and x.stands(life.gone.revision) for x in same)


def _may_be_claimed_unseen(case: Case, life: Life) -> bool:
    """Return whether its owners may have come and gone while no pods were seen."""
    assert life.gone is not None  # noqa: S101 - for mypy
    return not life.entry.reusable and any(
        gap.collection == "pods"
        and gap.since.revision < life.gone.revision
        and life.written.revision <= gap.until.revision
        and life.gone.at <= gap.until.at + case.rules.cleaner_s
        for gap in case.world.history.gaps
    )


def _explains(case: Case, write: Write, life: Life) -> bool:
    """Return whether the manager did something to an entry about when it went."""
    assert life.gone is not None  # noqa: S101 - for mypy
    timing = case.timing
    earliest = timing.earliest(life.gone.at) + case.rules.grace_s - case.rules.manager_s
    latest = timing.latest(life.gone.at) + case.rules.manager_s
    return (
        (write.configmap, write.key) == life.ref[:2]
        and write.item in {"", life.ref.item}
        and earliest <= write.at <= latest
        and write.at >= life.written.at - case.rules.manager_s
        and not (write.op == "put" and _entries(write).get(life.ref) in {life.entry, life.put})
    )


def _entries(write: Write) -> dict[Ref, Entry]:
    """Return the entries of a manager's write."""
    is_item = write.item and not write.value.startswith("[")
    return read_key(write.configmap, write.key, f"[{write.value}]" if is_item else write.value)


def edit_vanished(case: Case) -> Iterator[Violation]:
    """Yield the manager's entries that the store never showed."""
    history = case.world.history
    for write in history.manager or ():
        if write.op != "put" or not write.value or _cannot_tell(case, write):
            continue
        for ref, entry in _entries(write).items():
            if not any(_shows(case, life, write, entry) for life in _lives(case, ref)):
                yield Violation(
                    kind=Kind.EDIT_VANISHED,
                    revision=history.revision_at(write.at),
                    at=write.at,
                    node=entry.node,
                    entry=str(ref),
                    text="the manager put it, and the store never showed it",
                )


def _lives(case: Case, ref: Ref) -> tuple[Life, ...]:
    return case.world.lives_at.get(str(ref), ())


def _shows(case: Case, life: Life, write: Write, entry: Entry) -> bool:
    """Return whether an entry stood about when the manager put it."""
    slack = case.rules.manager_s
    since, until = write.at - slack, write.at + slack
    stood = life.written.at <= until and (life.gone is None or life.gone.at >= since)
    return stood and entry in {life.entry, life.put}


def _cannot_tell(case: Case, write: Write) -> bool:
    """Return whether the revision with a write may have been missed, or not have come yet."""
    history, slack = case.world.history, case.rules.manager_s
    gaps = [
        (g.since.at, g.until.at)
        for g in history.gaps
        if g.collection in {"configmaps", "reservations"}
    ]
    blind = [*gaps, *((o.since, o.until) for o in history.outages), (history.end, float("inf"))]
    return any(since - slack <= write.at <= until + slack for since, until in blind)

"""A reusable reservation keeps its claims when its expiry changes (docs/adr/0090)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.quota import Quota
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Ref, Reservation, Written
from reserver.reservations.status import ShortNodes
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.state import State
from tests.builders import NAMESPACE, NOW, held, node, pod, reservation, rule, state_of

HOUR = 3600.0
WEB = {"app": "web"}
SLOTS = 3


def kept(expires: float | None = NOW + HOUR, **changes: object) -> Reservation:
    """Return a reservation with reusable slots of one CPU."""
    fields = {"owners": [], "rules": [rule(app="web")], "slots": SLOTS, "cpu": "1"}
    return reservation("train", reusable=True, expires=expires, **(fields | changes))  # type: ignore[arg-type]


def state(*things: Reservation | Pod, now: float = NOW) -> State:
    return state_of(node("worker-1", cpu="16"), *things, now=now)


def owner(name: str, *claims: str, **changes: object) -> Pod:
    there = pod(name, node="worker-1", labels=WEB, cpu="1")
    return replace(there, claims=frozenset(claims), revision=11, **changes)  # type: ignore[arg-type]


def backed(seen: State) -> dict[str, bool]:
    short = ShortNodes.of(seen.snapshot)
    return {r.ref.key: short.status(r, seen.ledger).is_backed for r, _ in seen.ledger}


LONGER = [NOW + 2 * HOUR, NOW + 60, None]


@pytest.mark.parametrize("until", LONGER)
@pytest.mark.parametrize("is_restarted", [False, True])
def test_another_expiry_keeps_the_claims(until: float | None, *, is_restarted: bool) -> None:
    first, after = kept(), kept(until)
    web = owner("web", first.identity)
    seen = state(first, web)
    seen.ledger.put(after)
    if is_restarted:
        seen = state(after, web)
    assert held(seen, "worker-1") == 2000
    assert seen.ledger.claims(after.ref) == {web.uid: web.name}
    seen.pod_seen(replace(web, finished=True))
    assert held(seen, "worker-1") == 3000
    seen.ledger.advance((until or 0) + NOW + HOUR)
    assert held(seen, "worker-1") == (0 if until else 3000)


def test_it_ends_at_its_new_expiry_to_the_second() -> None:
    seen = state(kept())
    seen.ledger.put(kept(NOW + 2 * HOUR))
    for now, cpu in ((NOW + HOUR, 3000), (NOW + 2 * HOUR - 1, 3000), (NOW + 2 * HOUR, 0)):
        seen.ledger.advance(now)
        assert held(seen, "worker-1") == cpu


@pytest.mark.parametrize(
    "after",
    [
        kept(cpu="2"),
        kept(slots=4),
        kept(starts=NOW - 1),
        kept(rules=[rule(app="web", tier="front")]),
        reservation("train", owners=[], rules=[rule(app="web")], slots=SLOTS, cpu="1"),
    ],
)
def test_any_other_edit_makes_another_reservation(after: Reservation) -> None:
    first = kept()
    seen = state(first, owner("web", first.identity))
    seen.ledger.put(after)
    assert not seen.ledger.claims(after.ref)


def test_what_is_not_reusable_is_another_one_with_another_expiry() -> None:
    first, after = (
        reservation(
            "train", owners=[], rules=[rule(app="web")], slots=SLOTS, cpu="1", expires=NOW + n
        )
        for n in (HOUR, 2 * HOUR)
    )
    assert (first.lasting, first.edition) == ("", first.identity)
    assert first.identity != after.identity


class TestUpgrade:
    """Claims that a version before 0.2 wrote have the expiry in their name."""

    @pytest.mark.parametrize("pods_first", [True, False])
    def test_they_stay_claims(self, *, pods_first: bool) -> None:
        first = kept()
        web = owner("web", first.edition)
        seen = state(*((web, first) if pods_first else (first, web)))
        assert held(seen, "worker-1") == 2000
        seen.pod_seen(replace(web, finished=True))
        assert held(seen, "worker-1") == 3000

    def test_a_change_of_the_expiry_ends_them_as_a_restart_would(self) -> None:
        first, after = kept(), kept(NOW + 2 * HOUR)
        old, new = owner("old", first.edition), owner("new", first.identity, first.edition)
        seen = state(first, old, new)
        assert held(seen, "worker-1") == 1000
        assert seen.ledger.claims_lost_by_extension(first.ref) == 1
        seen.ledger.put(after)
        again = state(after, old, new)
        assert held(seen, "worker-1") == held(again, "worker-1") == 2000
        assert (
            seen.ledger.claims(after.ref) == again.ledger.claims(after.ref) == {new.uid: new.name}
        )
        assert seen.ledger.claims_lost_by_extension(first.ref) == 0
        seen.ledger.put(first)
        assert held(seen, "worker-1") == 1000

    def test_one_that_never_expires_is_no_exception(self) -> None:
        """Otherwise an upgrade would shrink a full hold of an older version."""
        never = kept(None)
        old = owner("old", never.edition)
        assert held(state(never, old), "worker-1") == 2000
        assert held(state(kept(), old), "worker-1") == 3000


class TestRollback:
    """Each claim is also stored by its name in an older version."""

    def test_a_binding_names_it_both_ways(self) -> None:
        first = kept()
        asking = pod("web", labels=WEB, cpu="1")
        verdict = judge_bind(asking, "worker-1", state(first, asking), NOW)
        assert (verdict.claims, verdict.editions) == ((first.identity,), (first.edition,))

    def test_an_older_version_knows_the_second_name(self) -> None:
        """The digest was computed by the version of 2026-11-26."""
        assert kept().edition == "shop/store/train@6857eedf6443307e"

    def test_what_is_not_reusable_has_one_name(self) -> None:
        once = reservation("once", expires=NOW + HOUR, cpu="1")
        asking = pod("owner", cpu="1")
        verdict = judge_bind(asking, "worker-1", state(once, asking), NOW)
        assert (verdict.claims, verdict.editions) == ((once.identity,), ())


class TestTurns:
    """The order of two holds that exceed the node."""

    def test_an_extension_keeps_its_turn(self) -> None:
        first, rival = kept(cpu="4"), reservation("rival", owners=["other"], cpu="12")
        seen = state()
        seen.ledger.put(first, Written(1, 1))
        seen.ledger.put(rival, Written(2, 2))
        seen.ledger.put(kept(NOW + 2 * HOUR, cpu="4"), Written(3, 3))
        assert backed(seen) == {"train": True, "rival": False}

    def test_what_had_expired_begins_anew_behind_the_others(self) -> None:
        first, rival = kept(cpu="4"), reservation("rival", owners=["other"], cpu="12")
        seen = state()
        seen.ledger.put(first, Written(1, 1))
        seen.ledger.put(rival, Written(2, 2))
        seen.ledger.advance(NOW + HOUR)
        assert seen.ledger.phase(first.ref) is Phase.EXPIRED
        seen.ledger.put(kept(NOW + 2 * HOUR, cpu="4"), Written(3, 3))
        assert seen.ledger.phase(first.ref) is Phase.ACTIVE
        assert backed(seen) == {"rival": True, "train": False}

    def test_what_was_released_as_idle_begins_anew(self) -> None:
        seen = state(kept(release_if_idle=60.0))
        seen.ledger.past.end()
        for now in (NOW, NOW + 60):
            seen.ledger.advance(now)
        assert seen.ledger.phase(kept().ref) is Phase.EXPIRED
        seen.ledger.put(kept(NOW + 2 * HOUR, release_if_idle=60.0))
        assert seen.ledger.phase(kept().ref) is Phase.ACTIVE


class TestQuota:
    """An admitted reservation stays admitted, except with a forbidden lifetime."""

    def ledger(self, quota: Quota) -> Ledger:
        seen = state()
        ledger = Ledger(seen.snapshot, quotas=Quotas())
        ledger.advance(NOW)
        ledger.quotas.limit(NAMESPACE, [quota])
        return ledger

    def test_an_extension_keeps_its_place_though_the_quota_is_lower_now(self) -> None:
        ledger = self.ledger(Quota(name="team", hard={"held.cpu": 3000}, max_ttl=None))
        ledger.put(kept())
        ledger.quotas.limit(NAMESPACE, [Quota(name="team", hard={"held.cpu": 1000}, max_ttl=None)])
        ledger.put(kept(NOW + 2 * HOUR))
        for _ in ledger.admit(NAMESPACE):
            pass
        assert ledger.phase(kept().ref) is Phase.ACTIVE

    @pytest.mark.parametrize("written", ["extended", "copied"])
    def test_a_life_that_is_forbidden_is_not_reached_by_steps(self, written: str) -> None:
        ledger = self.ledger(Quota(name="team", hard={}, max_ttl=90 * 60.0))
        ledger.put(kept())
        longer = kept(NOW + 2 * HOUR)
        if written == "copied":
            elsewhere = Ref.of_object(NAMESPACE, "copy")
            longer = replace(longer, ref=elsewhere, origin=str(longer.ref))
        ledger.put(longer)
        for _ in ledger.admit(NAMESPACE):
            pass
        assert ledger.phase(kept().ref) is Phase.PENDING
        assert "90m" in ledger.excess(kept().ref) or "1h30m" in ledger.excess(kept().ref)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("is_admitted", [True, False])
def test_a_copy_extends_what_a_manager_holds_only_if_its_quota_admits_it(
    *, is_first: bool, is_admitted: bool
) -> None:
    """A tenant writes the origin of a manager's reservation, perhaps without any quota."""
    quota = Quota(name="team", hard={"held.cpu": 3000 if is_admitted else 0}, max_ttl=None)
    written = replace(kept(NOW + HOUR), ref=Ref("home", "store", "r"))
    forged = replace(kept(None), ref=Ref.of_object(NAMESPACE, "mine"), origin=str(written.ref))
    snapshot = Snapshot()
    snapshot.set_node(node("worker-1", cpu="8"))
    ledger = Ledger(snapshot, quotas=Quotas(trusted=("home",)))
    ledger.advance(NOW)
    ledger.quotas.limit(NAMESPACE, [quota])
    for each in (forged, written) if is_first else (written, forged):
        ledger.put(each)
    assert ledger.phase(written.ref) is Phase.ACTIVE
    ledger.advance(NOW + HOUR)
    assert ledger.phase(written.ref) is (Phase.ACTIVE if is_admitted else Phase.EXPIRED)


@pytest.mark.parametrize("longer", ["here", "there"])
@pytest.mark.parametrize("stays", ["here", "there"])
def test_one_that_is_extended_while_it_is_moved_ends_with_the_last_of_both(
    longer: str, stays: str
) -> None:
    here = kept(NOW + (2 if longer == "here" else 1) * HOUR)
    there = replace(
        kept(NOW + (2 if longer == "there" else 1) * HOUR),
        ref=Ref.of_object(NAMESPACE, "train"),
        origin=str(here.ref),
    )
    seen = state(here, there, owner("web", here.identity))
    assert (seen.ledger.copies(here), seen.ledger.copies(there)) == (1, 1)
    seen.ledger.advance(NOW + HOUR)
    assert held(seen, "worker-1") == 2000
    seen.ledger.drop((there if stays == "here" else here).ref)
    assert held(seen, "worker-1") == (2000 if stays == longer else 0)


@pytest.mark.parametrize("until", LONGER)
def test_another_expiry_gives_no_slot_to_a_pod_that_has_finished(until: float | None) -> None:
    # Another scheduler bound the pod: no annotation says that the pod has a claim.
    first, after = kept(rules=[], owners=("web",)), kept(until, rules=[], owners=("web",))
    seen = state(first, owner("web"))
    assert held(seen, "worker-1") == 2000
    for again in (first, after):
        seen.pod_seen(owner("web", finished=True))
        seen.ledger.put(again)
        assert held(seen, "worker-1") == 3000
        assert not seen.ledger.claims(again.ref)

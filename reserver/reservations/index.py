"""The register of all reservations, by ref, by identity and by owner."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from reserver.cluster.pod import Pod, PodName
from reserver.errors import sparing
from reserver.reservations import owner
from reserver.reservations.account import Account
from reserver.reservations.digest import is_called
from reserver.reservations.entry import Entry
from reserver.reservations.owner import OwnerRule, ReplacementStanding, Succession
from reserver.reservations.reservation import Ref

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)


def raising(_: Ref, exc: Exception) -> None:
    """Raise a fault that no caller handles."""
    raise exc


class _Claimable(NamedTuple):
    """A reservation that a pod may claim if named, or if an owner rule matches.

    Attributes:
        account: the reservation's account.
        rules: its owner rules under one key.
        is_decided: whether each pod with the key matches one of the rules.
    """

    account: Account
    rules: tuple[OwnerRule, ...]
    is_decided: bool = False

    def by(self, pod: Pod, succession: Succession, standing: ReplacementStanding) -> bool:
        """Return whether a pod has a standing; a faulty account's rules are not evaluated."""
        if pod.name in self.account.reservation.owners:
            return standing is ReplacementStanding.MAY_CLAIM
        if self.account.is_faulty:
            return False
        if self.is_decided and standing is ReplacementStanding.MAY_CLAIM:
            return True
        return any(
            rule.matches(pod) and succession.standing(rule, pod) is standing for rule in self.rules
        )


class _Index(Generic[K, V]):
    """Values by key, oldest first.

    Most keys have one value, which needs no dict: that would be a tenth of a reservation's memory.

    Attributes:
        found: the value of each key, or a dict with several values as its keys.
    """

    def __init__(self) -> None:
        self.found: dict[K, V | dict[V, None]] = {}

    def get(self, key: K) -> Collection[V]:
        """Return the values of a key."""
        found = self.found.get(key)
        if found is None:
            return ()
        return found if isinstance(found, dict) else (found,)

    def insert(self, key: K, value: V) -> None:
        """Add a value under a key."""
        found = self.found.setdefault(key, value)
        if isinstance(found, dict):
            found[value] = None
        elif found != value:
            self.found[key] = {found: None, value: None}

    def discard(self, key: K, value: V) -> None:
        """Remove a value, and the key with its last value."""
        found = self.found.get(key)
        if isinstance(found, dict) and len(found) > 1:
            del found[value]
        else:
            del self.found[key]


class ReservationIndex:
    """The register: the account of each reservation under all its refs."""

    def __init__(
        self, succession: Succession, failed: Callable[[Ref, Exception], None] = raising
    ) -> None:
        """Begin without reservations.

        Args:
            succession: decides the standing of replacements.
            failed: called with each ref whose owner rules raise an exception.
        """
        self._succession = succession
        self._failed = failed
        self._by_ref: dict[Ref, Account] = {}
        self._by_identity: dict[str, Account] = {}
        self._renamed: _Index[str, Entry] = _Index()  # Entries with `other_digests`, by record.
        self._by_name: _Index[PodName, Account] = _Index()
        self._by_rule: _Index[owner.Key, _Claimable] = _Index()

    def __iter__(self) -> Iterator[tuple[Ref, Account]]:
        """Yield all refs with their accounts, in the order of their arrival."""
        return iter(self._by_ref.items())

    def refs(self) -> tuple[Ref, ...]:
        """Return the current refs, in the order of their arrival."""
        return tuple(self._by_ref)

    def __len__(self) -> int:
        """Return the number of refs."""
        return len(self._by_ref)

    def __getitem__(self, ref: Ref) -> Account:
        """Return the account of a ref; KeyError if the ref has no entry."""
        return self._by_ref[ref]

    def get(self, ref: Ref) -> Account | None:
        """Return the account of a ref; None if the ref has no entry."""
        return self._by_ref.get(ref)

    def of(self, identity: str) -> Account | None:
        """Return the account of an identity; None without one."""
        return self._by_identity.get(identity)

    def accounts(self) -> Iterable[Account]:
        """Return each account once."""
        return self._by_identity.values()

    def add(self, account: Account, entry: Entry) -> None:
        """Add an entry at a ref without one; the account may be in the register already."""
        reservation, identity = entry.reservation, account.identity
        if identity not in self._by_identity:
            claimable = _claimable(account)
            self._by_identity[identity] = account
            for name in reservation.owners:
                self._by_name.insert(name, account)
            for key, each in claimable.items():
                self._by_rule.insert(key, each)
        if reservation.drift or reservation.lasting:
            self._renamed.insert(reservation.record, entry)
        account.put(entry)
        self._by_ref[reservation.ref] = account

    def remove(self, ref: Ref) -> Entry:
        """Remove and return the entry of a ref; the account goes with its last entry."""
        account = self._by_ref.pop(ref)
        entry = account.pop(ref)
        if not account.entries:
            del self._by_identity[account.identity]
            for name in account.reservation.owners:
                self._by_name.discard(name, account)
            for key, each in _claimable(account).items():
                self._by_rule.discard(key, each)
        if entry.reservation.drift or entry.reservation.lasting:
            self._renamed.discard(entry.reservation.record, entry)
        return entry

    def meant(self, identity: str) -> Iterable[Account]:
        """Return the accounts that a claim's identity may mean: writers may use other digests."""
        account = self.of(identity)
        if account is not None:
            return (account,)
        record, _, digest = identity.rpartition("@")
        written = (each.reservation for each in self._renamed.get(record))
        return dict.fromkeys(self._by_ref[each.ref] for each in written if is_called(each, digest))

    def may_concern(self, pod: Pod) -> bool:
        """Return whether any reservation names a pod, or has a rule that may match it."""
        named, ruled = self._by_name.found, self._by_rule.found
        return pod.name in named or not ruled.keys().isdisjoint(owner.keys(pod))

    def naming(self, pod: PodName) -> tuple[Account, ...]:
        """Return the accounts that name a pod, in the order of their arrival."""
        return tuple(self._by_name.get(pod))

    def matching(
        self, pod: Pod, standing: ReplacementStanding = ReplacementStanding.MAY_CLAIM
    ) -> Iterable[Account]:
        """Return the accounts to which a pod has a standing, oldest first.

        Only rules that may match the pod are evaluated, however many rules there are.
        """
        keys = owner.keys(pod)
        asked = [each for key in keys for each in self._by_rule.get(key)]
        asked += [_Claimable(account, ()) for account in self._by_name.get(pod.name)]
        return self._asked(asked, pod, standing)

    def matching_of(self, accounts: Iterable[Account], pod: Pod) -> Iterable[Account]:
        """Return the accounts of a set that a pod may claim, oldest first."""
        asked = [_Claimable(account, account.reservation.rules) for account in accounts]
        return self._asked(asked, pod, ReplacementStanding.MAY_CLAIM)

    def _asked(
        self, asked: Collection[_Claimable], pod: Pod, standing: ReplacementStanding
    ) -> Iterable[Account]:
        if not asked:
            return ()
        found: list[Account] = []
        faults: list[Exception] = []
        with sparing(faults.append):
            found = self._matching(asked, pod, standing)
        for each in asked if faults else ():
            with sparing(partial(self._mark_faulty, each.account)):
                each.by(pod, self._succession, standing)
        return self._matching(asked, pod, standing) if faults else found

    def _matching(
        self, asked: Iterable[_Claimable], pod: Pod, standing: ReplacementStanding
    ) -> list[Account]:
        stands = (each.account for each in asked if each.by(pod, self._succession, standing))
        found = {account.order: account for account in stands}
        return [found[order] for order in sorted(found)]

    def owns(self, pod: Pod, account: Account) -> bool:
        """Return whether a pod may claim a reservation; mirror pods may not."""
        is_owner = not pod.is_mirror and pod.name in account.reservation.owners
        if not account.is_faulty:
            with sparing(partial(self._mark_faulty, account)):
                is_owner = account.reservation.is_owned_by(pod)
        return is_owner

    def _mark_faulty(self, account: Account, exc: Exception) -> None:
        """Record that an owner rule has raised: from now on only named pods may claim."""
        account.is_faulty = True
        for ref in account.refs or (account.reservation.ref,):
            self._failed(ref, exc)


def _claimable(account: Account) -> dict[owner.Key, _Claimable]:
    """Return a reservation's rules under their keys."""
    rules: dict[owner.Key, tuple[OwnerRule, ...]] = {}
    for rule in account.reservation.rules:
        key = rule.key()
        rules[key] = (*rules.get(key, ()), rule)
    return {
        key: _Claimable(account, some, any(rule.is_its_key for rule in some))
        for key, some in rules.items()
    }

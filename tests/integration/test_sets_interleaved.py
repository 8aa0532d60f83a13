"""A Reserver writes a set, others start beside it: every order of what they ask and see.

In the end the set is whole and acknowledged, or nothing is left of it, whoever dies when.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import pytest

from reserver.errors import ApiError
from reserver.k8s.client import MERGE_PATCH, ApiClient
from reserver.k8s.objects.objects import encode
from reserver.stores.writer import StoreEdits
from tests.builders import NOW
from tests.unit.k8s.fakes import patched, refused
from tests.unit.stores.desks import HOME, ItemDesk

Item = dict[str, Any]
Choose = Callable[[int], int]
"""Returns which of so many turns is next."""

_ROUNDS = 6
"""So often the loop goes round until all have done what they can."""


class Server:
    """The Reservations of a cluster, and all that became of them.

    Attributes:
        items: those of Reserver's namespace, by name.
        others: those of another one, with the same names and the same label; nobody writes them.
        events: all that became of either.
    """

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.others: dict[str, Item] = {}
        self.events: list[tuple[str, Item]] = []

    def carry_out(self, verb: str, path: str, body: Any) -> bytes:
        """Carry out a request as the API server does, at once."""
        assert f"/namespaces/{HOME}/" in path
        body, key = json.loads(encode(body)), path.rpartition("/")[2]
        there = self.items.get(key)
        if verb == "create":
            key = body["metadata"]["name"]
            if key in self.items:
                raise refused(409)
            self._mirror(key, body)
            return self._put(key, body, uid=f"uid-{len(self.events)}")
        if there is None:
            raise refused(404)
        if verb == "get":
            return encode(there)
        if verb == "patch":
            return self._put(key, patched(there, body))
        wanted = {"uid": there["metadata"]["uid"], "resourceVersion": self._version(there)}
        if body["preconditions"] != wanted:
            raise refused(409)
        del self.items[key]
        self.events.append(("DELETED", there))
        return b"{}"

    def _put(self, key: str, after: Item, **more: str) -> bytes:
        version = {"resourceVersion": str(len(self.events) + 1), "namespace": HOME}
        spec = after["spec"] | {"slots": 1, "policy": "Prefer"}
        made = {**after, "metadata": {**after["metadata"], **version, **more}, "spec": spec}
        self.items[key] = made
        self.events.append(("MODIFIED", made))
        return encode(made)

    def _mirror(self, key: str, body: Item) -> None:
        """Let there be a Reservation of that name, and of a set of that name, elsewhere."""
        labels = body["metadata"]["labels"]
        metadata = {"name": key, "namespace": "shop", "uid": f"shop-{key}", "labels": labels}
        spec = {name: each for name, each in body["spec"].items() if name != "origin"}
        version = {"resourceVersion": str(len(self.events) + 1)}
        self.others[key] = {"metadata": metadata | version, "spec": spec}
        self.events.append(("MODIFIED", self.others[key]))

    @staticmethod
    def _version(there: Item) -> str:
        return str(there["metadata"]["resourceVersion"])


class Reserver(ApiClient):
    """A Reserver whose requests, and what its watch shows, have their turn when a test says so."""

    def __init__(self, server: Server, tasks: asyncio.TaskGroup) -> None:
        self.api = server
        self.desk = ItemDesk(tasks)
        self.desk.writer.client = self.desk.client = self  # type: ignore[assignment]
        self.pending: list[tuple[asyncio.Future[bytes], tuple[str, str, Any]]] = []
        self.shown = 0
        self.writing: asyncio.Task[Any] | None = None
        self.cleaning = tasks.create_task(self._clean())

    def start(self) -> None:
        """List all there is, and take back what nobody finishes."""
        self.shown = len(self.api.events)
        self.desk.show(*self.api.items.values(), *self.api.others.values())
        self.desk.store.abandon_unfinished()

    def insert(self, keys: str) -> None:
        self.writing = self.desk.insert(*keys)

    def turns(self) -> Iterator[Callable[[], None]]:
        """Yield what may happen next."""
        for index in range(len(self.pending)):
            yield partial(self._answer, index)
        if self.shown < len(self.api.events):
            yield self.see

    def die(self, *, is_lost: bool) -> None:
        """End; what is under way is carried out all the same, or is not."""
        for _, request in () if is_lost else self.pending:
            with suppress(ApiError):
                self.api.carry_out(*request)
        self.pending.clear()
        self.cleaning.cancel()
        if self.writing is not None:
            self.writing.cancel()

    def _answer(self, index: int) -> None:
        answer, request = self.pending.pop(index)
        try:
            answer.set_result(self.api.carry_out(*request))
        except ApiError as exc:
            answer.set_exception(exc)

    def see(self) -> None:
        verb, item = self.api.events[self.shown]
        self.shown += 1
        if verb == "DELETED":
            self.desk.gone(item["metadata"]["name"])
        else:
            self.desk.show(item)

    async def _clean(self) -> None:
        """Do as the cleaner does: look at each that is touched."""
        apply = StoreEdits(self)
        while True:
            touched, self.desk.touched[:] = tuple(dict.fromkeys(self.desk.touched)), ()
            for ref in touched:
                edit = self.desk.store.due_edit(ref, NOW)
                if edit is not None:
                    await apply.edit(edit)
            await asyncio.sleep(0)

    async def _asked(self, verb: str, path: str, body: Any = None) -> bytes:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.pending.append((answer, (verb, path, body)))
        return await answer

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:  # noqa: ARG002
        return await self._asked("get", path)

    async def create(self, path: str, body: object) -> bytes:
        return await self._asked("create", path, body)

    async def patch(self, path: str, body: object, content_type: str = MERGE_PATCH) -> bytes:  # noqa: ARG002
        return await self._asked("patch", path, body)

    async def delete(self, path: str, options: object) -> bytes:
        return await self._asked("delete", path, options)


class Play:
    """One order of things.

    Attributes:
        api: what is there.
        writer: writes a set.
        others: those that have started meanwhile.
    """

    def __init__(
        self,
        choose: Choose,
        keys: str,
        *,
        lags: bool = False,
        dies: bool = False,
        meets: bool = True,
    ) -> None:
        """Let `choose` choose.

        Args:
            choose: which turn is next.
            keys: of the set.
            lags: watches show what has become later than at once.
            dies: the writer may die.
            meets: another one may start while it lives.
        """
        self.choose, self.keys = choose, keys
        self.lags, self.dies, self.meets = lags, dies, meets
        self.api = Server()
        self.others: list[Reserver] = []

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self.writer = Reserver(self.api, tasks)
            self.writer.insert(self.keys)
            await self._go_on(tasks, is_first=True)
            if self.writer.writing is None or self.writer.writing.cancelled():
                self._start(tasks)
                await self._go_on(tasks, is_first=False)
            self._judge()
            for each in (self.writer, *self.others):
                each.die(is_lost=True)

    async def _go_on(self, tasks: asyncio.TaskGroup, *, is_first: bool) -> None:
        """Let all have their turns until nobody has one."""
        while True:
            for _ in range(_ROUNDS):
                await asyncio.sleep(0)
            reservers = (self.writer, *self.others)
            if not self.lags and sum(map(self._catch_up, reservers)):
                continue
            turns = [turn for each in reservers for turn in each.turns()]
            if is_first and self.meets and not self.others:
                turns.append(partial(self._start, tasks))
            if is_first and self.dies and not self._is_dead:
                ways = (True, False) if self.writer.pending else (True,)
                turns += [partial(self.writer.die, is_lost=is_lost) for is_lost in ways]
            if not turns:
                return
            turns[self.choose(len(turns))]()

    def _start(self, tasks: asyncio.TaskGroup) -> None:
        self.others.append(Reserver(self.api, tasks))
        self.others[-1].start()

    @property
    def _is_dead(self) -> bool:
        return self.writer.cleaning.cancelled()

    @staticmethod
    def _catch_up(reserver: Reserver) -> bool:
        if reserver.shown == len(reserver.api.events) or reserver.cleaning.cancelled():
            return False
        reserver.see()
        return True

    def _judge(self) -> None:
        writing, there = self.writer.writing, set(self.api.items)
        assert writing is not None
        if self._is_dead:
            assert there in (set(), set(self.keys))
        else:
            assert there == (set(self.keys) if writing.result() is None else set())
        assert not any(
            "annotations" in item["metadata"] and item["metadata"]["annotations"]
            for item in self.api.items.values()
        )


def every(most: int) -> Iterator[Choose]:
    """Yield what chooses each order once, one after the other."""
    chosen: list[int] = []
    for _ in range(most):
        numbers: list[int] = []

        def choose(number: int, numbers: list[int] = numbers) -> int:
            at = len(numbers)
            numbers.append(number)
            if at == len(chosen):
                chosen.append(0)
            return chosen[at]

        yield choose
        while chosen and chosen[-1] + 1 == numbers[len(chosen) - 1]:
            chosen.pop()
        if not chosen:
            return
        chosen[-1] += 1
    pytest.fail("there are more orders")


async def test_a_set_is_finished_or_taken_back_in_every_order_of_the_requests() -> None:
    orders = 0
    for choose in every(most=5_000):
        await Play(choose, "ab").run()
        orders += 1
    assert orders > 20


async def test_a_set_whose_writer_dies_is_finished_or_taken_back_in_every_order() -> None:
    orders = 0
    for choose in every(most=5_000):
        await Play(choose, "ab", dies=True, meets=False).run()
        orders += 1
    assert orders > 10


@pytest.mark.parametrize("seed", range(200))
async def test_a_set_is_finished_or_taken_back_however_far_watches_are_behind(seed: int) -> None:
    random = Random(seed)
    await Play(random.randrange, "abc", lags=True, dies=seed % 2 == 0).run()

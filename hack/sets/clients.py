"""Clients in a process of their own that create sets, release some of them, and all at last."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

import uvloop

from hack.sets.auditor import PREFIX
from reserver.client import CallFailed, Client, PodOwner, Spec

PARTS = 3


@dataclass
class Outcome:
    """The outcomes of the calls.

    Attributes:
        codes: the number of answers by status code.
        seconds: durations of calls, by whether a set was created or refused.
    """

    codes: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"created": [], "refused": []})


def run(address: str, nodes: list[str], calls: int, count: int) -> Outcome:
    """Make so many calls from so many clients."""
    return uvloop.run(_run(address, nodes, calls, count))


async def _run(address: str, nodes: list[str], calls: int, count: int) -> Outcome:
    outcome = Outcome()
    numbers = iter(range(calls))
    dice = random.Random(1)  # noqa: S311 - the same each time

    async def one(client: Client) -> None:
        mine: list[list[str]] = []
        for number in numbers:
            names = [f"{PREFIX}{number}-{part}" for part in range(PARTS)]
            began = time.perf_counter()
            try:
                await client.create_set(_specs(names, dice.sample(nodes, PARTS)))
            except CallFailed as exc:
                outcome.codes[exc.code] += 1
                outcome.seconds["refused"].append(time.perf_counter() - began)
            else:
                outcome.codes["OK"] += 1
                outcome.seconds["created"].append(time.perf_counter() - began)
                mine.append(names)
            if mine and dice.random() < 0.1:  # noqa: PLR2004 - now and then
                await _release(client, mine.pop(dice.randrange(len(mine))))
        for names in mine:
            await _release(client, names)

    async with Client(address, deadline_s=60) as client, asyncio.TaskGroup() as tasks:
        for _ in range(count):
            tasks.create_task(one(client))
    return outcome


async def _release(client: Client, names: list[str]) -> None:
    for name in names:
        await client.release(name)


def _specs(names: list[str], nodes: list[str]) -> dict[str, Spec]:
    return {
        name: Spec(
            owners=(PodOwner(namespace="shop", name=name),),
            node=node,
            resources={"cpu": "1"},
            ttl=timedelta(hours=1),
        )
        for name, node in zip(names, nodes, strict=True)
    }

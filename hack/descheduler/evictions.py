"""Whether `--compat upstream` evicts what upstream's own code evicts.

Upstream breaks ties at random, so several runs of it say which pods it always evicts, which it may
evict, and how many.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from hack.descheduler import clusters, policies
from hack.descheduler.oracle import Json, Oracle
from reserver.rebalance import dump, upstream
from reserver.rebalance.policy_reader import read

_RUNS = (12, 100, 600)
"""Runs of upstream; a difference is tried again with more runs."""


@dataclass(frozen=True)
class Range:
    """The evictions of several runs.

    Attributes:
        must: pods that every run evicted.
        may: pods that any run evicted.
        fewest: pods in one run.
        most: pods in one run.
    """

    must: frozenset[str]
    may: frozenset[str]
    fewest: int
    most: int

    def has(self, evicted: frozenset[str]) -> bool:
        """Return whether another run may have evicted these."""
        return self.must <= evicted <= self.may and self.fewest <= len(evicted) <= self.most

    def __str__(self) -> str:
        """Return it for a person."""
        sometimes = sorted(self.may - self.must)
        return f"always {sorted(self.must)}, at times {sometimes}, {self.fewest} to {self.most}"


def range_of(runs: Iterable[Iterable[str]]) -> Range:
    """Return what runs have in common, and what not."""
    found = [frozenset(run) for run in runs]
    sizes = [len(run) for run in found]
    return Range(
        must=frozenset.intersection(*found),
        may=frozenset.union(*found),
        fewest=min(sizes),
        most=max(sizes),
    )


@dataclass
class Pairs:
    """The comparisons, and their differences.

    Attributes:
        compared: compared clusters with a policy.
        evicting: comparisons in which upstream evicts.
        tied: comparisons in which upstream's runs differ.
        strategies: evicting comparisons by enabled strategy.
        differences: the differences.
    """

    compared: int = 0
    evicting: int = 0
    tied: int = 0
    strategies: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def compare(oracle: Oracle, draw: random.Random, found: Pairs) -> None:
    """Draw a cluster and a policy, and compare what both evict."""
    policy = policies.policy(draw)
    strategies = policies.strategies(policy)
    now = time.time()
    objects = clusters.cluster(draw, now, strategies)
    text = json.dumps(policy)
    ours = _ours(text, objects, now)
    for runs in _RUNS:
        answer = oracle.ask(text, objects, runs)
        if answer.error:
            raise ValueError(f"{answer.error}\n{text}")  # The generator draws valid ones.
        theirs = range_of(answer.runs)
        if theirs.has(ours):
            break
    else:
        kept = _kept(text, objects)
        found.differences.append(f"upstream: {theirs}\nours: {sorted(ours)}\n{text}\n{kept}")
    found.compared += 1
    found.evicting += bool(theirs.may)
    found.tied += theirs.must != theirs.may
    found.strategies.update(set(strategies) if theirs.may else ())


def _kept(policy: str, objects: list[Json]) -> str:
    """Keep a pair for whoever looks into it, and return where."""
    folder = Path(tempfile.mkdtemp(prefix="descheduler-"))
    (folder / "policy.json").write_text(policy)
    (folder / "objects.jsonl").write_text("\n".join(map(json.dumps, objects)))
    return f"kept in {folder}"


def _ours(text: str, objects: list[Json], now: float) -> frozenset[str]:
    reading = read(text.encode(), clusters.CLASSES.get)
    if reading.policy is None:
        raise ValueError(f"{reading.problems[0]}\n{text}")
    lines = "\n".join(map(json.dumps, objects)).encode()
    plan = upstream.plan(dump.read_dump(lines).inventory, reading.policy, now)
    return frozenset(str(move.pod) for move in plan.moves)

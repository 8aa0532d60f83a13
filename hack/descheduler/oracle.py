"""Upstream's answers: which pods its own code evicts, and which policies it takes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from hack.go_tool import DESCHEDULER
from hack.programs import started

Json = dict[str, Any]
Evictions = tuple[str, ...]
"""Pods as ``namespace/name``, in the order of their eviction."""


@dataclass(frozen=True)
class Answer:
    """Upstream's answer.

    Attributes:
        error: the reason to refuse the policy; empty for a valid policy.
        runs: the evictions of each cycle; upstream breaks ties at random.
        seconds: the duration of each cycle; several run at the same time.
    """

    error: str
    runs: tuple[Evictions, ...] = ()
    seconds: tuple[float, ...] = ()


class Oracle:
    """A process that answers questions."""

    def __init__(self, questions: IO[str], answers: IO[str]) -> None:
        self._questions, self._answers = questions, answers

    def ask(self, policy: str, objects: Sequence[Json] = (), runs: int = 0) -> Answer:
        """Return what upstream does with a policy file.

        Args:
            policy: the file.
            objects: of a cluster, as the API server has them.
            runs: cycles, each on these objects; none asks whether the policy is taken.
        """
        question = {"policy": policy, "objects": objects, "runs": runs}
        self._questions.write(json.dumps(question) + "\n")
        self._questions.flush()
        said = json.loads(self._answers.readline())
        cycles = said.get("runs") or []
        return Answer(
            error=said.get("error", ""),
            runs=tuple(tuple(each["pod"] for each in cycle or ()) for cycle in cycles),
            seconds=tuple(said.get("seconds", ())),
        )


@contextmanager
def oracle() -> Iterator[Oracle]:
    """Build the program if need be, and run it."""
    pipe = subprocess.PIPE
    with started(str(DESCHEDULER.build()), stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None  # noqa: S101 - as asked for above
        assert process.stdout is not None  # noqa: S101 - as above
        yield Oracle(process.stdin, process.stdout)

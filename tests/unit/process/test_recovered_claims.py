"""Claims that only the API server's watch history shows are written before all else."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from reserver.process import background
from reserver.reservations.reservation import Ref
from tests.builders import pod
from tests.unit.whole import OBJECTS, Whole, spec

SYSTEM = "reserver-system"


def ref(number: int) -> Ref:
    return Ref.of_object(SYSTEM, f"r-{number}")


async def test_the_oldest_claims_of_pods_that_are_gone_are_written_first() -> None:
    async with asyncio.TaskGroup() as tasks:
        whole = Whole(tasks)
        for number in range(9):
            named = spec(number, node="worker-1")
            whole.show(OBJECTS, f"r-{number}", SYSTEM, spec=named | {"owners": _owners(number)})
        for number in (8, 5):
            gone = pod(f"owner-{number}", node="worker-1", namespace=SYSTEM)
            revision = whole.client.revision + 1
            assert whole.state.ledger.past.recall_binding(
                replace(gone, revision=revision), exact=True
            )
        await background._become_ready(whole.assembly, tasks)
        for queue in (
            whole.assembly.cleaner.queue,
            whole.assembly.stores.at(ref(0)).statuses.queue,
        ):
            assert queue.take_all()[:3] == [ref(8), ref(5), ref(0)]
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()  # Those that becoming ready has started.


def _owners(number: int) -> list[dict[str, dict[str, str]]]:
    return [{"pod": {"name": f"owner-{number}"}}]

"""SchedPatches: independent of another namespace with equal names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster.labels import equals
from reserver.patches.book import Book, Mark, NewPod
from reserver.patches.model import PatchName, SchedPatch, Scheduling
from tests.property.namespaces.histories import HERE, THERE, same, spaces

# SchedPatches.

patch_events = st.tuples(
    spaces,
    st.tuples(
        st.sampled_from(["put", "drop", "create", "seen", "forged"]),
        st.sampled_from(["p-0", "p-1"]),
        st.integers(1, 3),
    ),
)


@given(st.lists(patch_events, max_size=25))
def test_pods_are_patched_as_if_no_other_namespace_had_patches_of_their_names(
    history: list[tuple[str, tuple[str, str, int]]],
) -> None:
    def patched(played: Sequence[tuple[str, tuple[str, str, int]]]) -> Any:
        changed, told = list[PatchName](), list[Any]()
        book = Book("one", changed.append)
        marks: dict[str, tuple[Mark, ...]] = {HERE: (), THERE: ()}
        for space, (what, name, number) in played:
            if what == "put":
                patch = SchedPatch(
                    name=PatchName(space, name),
                    uid=f"uid-{name}",  # As if a UID could be chosen, too.
                    selector=equals({"app": "web"}),
                    max_count=number,
                    injected=Scheduling(node_selector={f"{name}-{space}": "yes"}),
                )
                slots = book.put(patch).slots
                record = slots.wanted(0.0, is_over=False)
                slots.recorded(record, number, 0.0, inherits=False)
            elif what == "drop":
                book.drop(PatchName(space, name))
            elif what == "create":
                asked = NewPod(namespace=space, name="web", labels={"app": "web"})
                verdict = book.decide(asked, 0.0, is_dry_run=False)
                marks[space] = verdict.marks
                if space == HERE:
                    told.append(verdict)
            elif what == "seen":
                book.pod_seen(space, marks[space])
            else:
                book.pod_seen(space, (Mark(name, f"uid-{name}", number),))
        return told, [name for name in changed if name.namespace == HERE]

    same(history, patched)

"""The effect of all patches on a new pod."""

from dataclasses import replace

import pytest

from reserver.cluster.labels import equals
from reserver.patches.book import MOST_EARLY, MOST_MERGED, MOST_PATCHES, Book, Mark, NewPod
from reserver.patches.model import PatchName, SchedPatch, Scheduling
from reserver.patches.slots import RETURN_AFTER_S

WEB = NewPod(namespace="shop", name="web-0", labels={"app": "web"})


def named(name: str, count: int = 1, namespace: str = "shop", **selector: str) -> SchedPatch:
    return SchedPatch(
        name=PatchName(namespace, name),
        uid=f"uid-{name}",
        selector=equals({"app": "web"}),
        max_count=count,
        injected=Scheduling(node_selector=selector or {name: "yes"}),
    )


class World:
    """A book whose statuses a test writes."""

    def __init__(self, *patches: SchedPatch) -> None:
        self.changed: list[PatchName] = []
        self.book = Book("one", self.changed.append)
        for patch in patches:
            self.put(patch)

    def put(self, patch: SchedPatch) -> None:
        slots = self.book.put(patch).slots
        slots.recorded(slots.wanted(0.0, is_over=False), 1, 0.0, inherits=False)

    def patched(
        self, pod: NewPod = WEB, now: float = 0.0, *, is_dry_run: bool = False
    ) -> list[str]:
        verdict = self.book.decide(pod, now, is_dry_run=is_dry_run)
        return [name.name for name in verdict.patched]


def test_a_pod_that_matches_is_patched_and_says_so() -> None:
    world = World(named("fast"))
    verdict = world.book.decide(WEB, 0.0, is_dry_run=False)
    assert verdict.scheduling.node_selector == {"fast": "yes"}
    assert verdict.marks == (Mark("fast", "uid-fast", 0),)
    assert world.changed == [PatchName("shop", "fast")]


def test_a_patch_is_for_its_namespace_its_labels_and_its_time() -> None:
    world = World(replace(named("fast"), expires_at=10.0))
    assert world.patched(replace(WEB, namespace="bank")) == []
    assert world.patched(replace(WEB, labels={"app": "db"})) == []
    assert world.patched(now=10.0) == []
    assert world.patched(now=9.9) == ["fast"]


def test_no_more_pods_are_patched_than_it_says() -> None:
    world = World(named("fast", count=3))
    assert [world.patched() for _ in range(5)] == [["fast"]] * 3 + [[]] * 2


def test_a_dry_run_shows_the_patch_and_takes_nothing() -> None:
    world = World(named("fast"))
    for _ in range(3):
        verdict = world.book.decide(WEB, 0.0, is_dry_run=True)
        assert (verdict.scheduling.node_selector, verdict.marks) == ({"fast": "yes"}, ())
    assert world.changed == []
    assert world.patched() == ["fast"]


def test_a_dry_run_leaves_no_conflict() -> None:
    world = World(named("fast", zone="a"))
    pod = replace(WEB, scheduling=Scheduling(node_selector={"zone": "b"}))
    assert world.patched(pod, is_dry_run=True) == []
    assert world.changed == []


def test_several_patches_are_merged_in_the_order_of_their_names() -> None:
    world = World(named("b", zone="b"), named("c"), named("a", zone="a"))
    verdict = world.book.decide(WEB, 0.0, is_dry_run=False)
    assert [name.name for name in verdict.patched] == ["a", "c"]
    assert verdict.scheduling.node_selector == {"zone": "a", "c": "yes"}


def test_a_patch_that_conflicts_takes_no_slot_and_says_with_which_pod() -> None:
    world = World(named("fast", zone="a"))
    assert world.patched(replace(WEB, scheduling=Scheduling(node_selector={"zone": "b"}))) == []
    entry = world.book.get(PatchName("shop", "fast"))
    assert entry is not None
    assert entry.conflict is not None
    assert entry.conflict[0] == "web-0"
    assert str(entry.conflict[1]) == "spec.nodeSelector.zone: 'b' is demanded already, not 'a'"
    assert world.patched() == ["fast"]
    world.put(named("fast", zone="b"))
    assert entry.conflict is None


def test_a_pod_that_is_asked_about_again_keeps_its_slot() -> None:
    world = World(named("fast"))
    first = world.book.decide(WEB, 0.0, is_dry_run=False)
    again = replace(WEB, marks=first.marks, scheduling=first.scheduling)
    verdict = world.book.decide(again, 1.0, is_dry_run=False)
    assert (verdict.marks, verdict.scheduling) == (first.marks, first.scheduling)
    assert verdict.patched == ()


def test_a_copy_of_a_patched_pod_counts_as_any_other() -> None:
    world = World(named("fast", count=2))
    first = world.book.decide(WEB, 0.0, is_dry_run=False)
    world.book.pod_seen("shop", first.marks)
    copied = replace(WEB, marks=first.marks, scheduling=first.scheduling)
    verdict = world.book.decide(copied, 1.0, is_dry_run=False)
    assert verdict.marks == (Mark("fast", "uid-fast", 1),)
    assert world.book.decide(copied, 1.0, is_dry_run=False).marks == ()


def test_a_pod_that_is_refused_afterwards_gives_its_slot_back() -> None:
    world = World(named("fast"))
    assert world.patched() == ["fast"]
    assert world.patched(now=RETURN_AFTER_S - 1) == []
    assert world.patched(now=RETURN_AFTER_S) == ["fast"]


@pytest.mark.parametrize("patches", [1, 4])
def test_a_pod_with_many_marks_changes_each_of_its_patches_once(patches: int) -> None:
    """Each notice compares all slots of the patch."""
    names = [f"p{number}" for number in range(patches)]
    world = World(*(named(name, count=99) for name in names))
    marks = [Mark(names[n % patches], f"uid-{names[n % patches]}", n) for n in range(MOST_MERGED)]
    for _ in range(2):
        world.book.pod_seen("shop", tuple(marks))
    assert world.changed == [PatchName("shop", name) for name in names]


def test_a_patch_of_the_same_name_is_another_one() -> None:
    world = World(named("fast"))
    world.patched()
    world.put(replace(named("fast"), uid="uid-2"))
    world.book.pod_seen("shop", (Mark("fast", "uid-fast", 0),))
    assert world.patched() == ["fast"]


def test_pods_that_are_listed_before_their_patch_count() -> None:
    world = World()
    world.book.pod_seen("shop", (Mark("fast", "uid-fast", 0),))
    world.book.pod_seen("bank", (Mark("fast", "uid-fast", 1),))
    world.put(named("fast", count=2))
    assert [world.patched(), world.patched()] == [["fast"], []]


def test_forged_marks_of_one_namespace_take_bounded_memory() -> None:
    book = Book("one", lambda _: None)
    for slot in range(MOST_EARLY + 5):
        book.pod_seen("shop", (Mark("none", "none", slot),))
    assert book._early is not None
    assert len(book._early["shop"]) == MOST_EARLY
    book.complete()
    book.pod_seen("shop", (Mark("none", "none", 0),))
    assert book._early is None


def test_so_many_patches_count_and_so_many_are_merged() -> None:
    world = World(*(named(f"p{index:03}", count=99) for index in range(MOST_PATCHES + 1)))
    assert world.patched() == [f"p{index:03}" for index in range(MOST_MERGED)]
    world.book.suspend(PatchName("shop", "p000"))
    assert world.patched()[-1] == f"p{MOST_MERGED:03}"
    only = World(*(named(f"p{index:03}") for index in range(MOST_PATCHES)), named("z"))
    assert "z" not in {name for _ in range(9) for name in only.patched()}


def test_a_patch_without_a_recorded_slot_is_awaited_and_one_that_is_spent_is_not() -> None:
    book = Book("one", lambda _: None)
    slots = book.put(named("fast")).slots
    assert book.awaited(WEB, 0.0) == (PatchName("shop", "fast"),)
    slots.recorded(slots.wanted(0.0, is_over=False), 1, 0.0, inherits=False)
    assert book.awaited(WEB, 0.0) == ()
    book.decide(WEB, 0.0, is_dry_run=False)
    assert book.awaited(WEB, 0.0) == ()


def test_nothing_stays_of_patches_that_are_gone() -> None:
    world = World(named("a"), named("b"), named("a", namespace="bank"))
    for name in world.book.names():
        world.book.drop(name)
        world.book.drop(name)
    assert (world.book.names(), world.book.has_any("shop"), world.book._order) == ((), False, {})


def test_a_patch_made_again_under_its_name_has_all_its_slots() -> None:
    world = World()
    world.book.pod_seen("shop", (Mark("fast", "uid-of-the-former", 0),))
    world.put(named("fast"))
    assert world.patched() == ["fast"]

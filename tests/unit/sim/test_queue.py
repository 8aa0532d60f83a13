"""Who is tried next, who waits, and what wakes whom."""

import math
from dataclasses import replace

from reserver.cluster.pod import Pod, PodName
from reserver.sim.scheduler.objects import PodView
from reserver.sim.scheduler.queue import LEFTOVER_SECONDS, Happening, SchedulingQueue, Waiting


def _view(name: str, *, priority: int = 0, nominated: str = "") -> PodView:
    pod = Pod(name=PodName("default", name), uid=name, priority=priority, nominated_node=nominated)
    return PodView(pod, {"metadata": {"name": name}, "spec": {}, "status": {}})


def _queue(*views: PodView) -> SchedulingQueue:
    queue = SchedulingQueue(initial_backoff=1, max_backoff=10)
    for number, view in enumerate(views):
        queue.add(view, now=number / 1000)
    return queue


def _pop(queue: SchedulingQueue, now: float) -> Waiting:
    waiting = queue.pop(now)
    assert waiting is not None
    return waiting


def _order(queue: SchedulingQueue, now: float = 1.0) -> list[str]:
    names = []
    while waiting := queue.pop(now):
        names.append(waiting.view.pod.uid)
    return names


def test_higher_priority_goes_first_then_who_came_first() -> None:
    queue = _queue(_view("a"), _view("b", priority=5), _view("c"), _view("d", priority=5))
    assert _order(queue) == ["b", "d", "a", "c"]


def test_a_removed_pod_is_not_tried() -> None:
    queue = _queue(_view("a"), _view("b"))
    queue.remove("a")
    assert _order(queue) == ["b"]


def test_a_refused_pod_waits_until_something_happens() -> None:
    queue = _queue(_view("a"))
    queue.refused(_pop(queue, 0), 0, by_extender=False)
    assert queue.pop(100) is None
    queue.move(Happening.NODE_CHANGED, 100)
    assert _order(queue, 100) == ["a"]


def test_a_pod_that_kube_scheduler_refused_cares_for_room_only() -> None:
    queue = _queue(_view("a"))
    queue.refused(_pop(queue, 0), 0, by_extender=False)
    queue.move(Happening.POD_ASSIGNED, 50)
    queue.update(_view("a"), 50)
    assert queue.pop(50) is None
    queue.move(Happening.POD_GONE, 50)
    assert _order(queue, 50) == ["a"]


def test_a_pod_that_an_extender_refused_cares_for_everything() -> None:
    for happening in Happening:
        queue = _queue(_view("a"))
        queue.refused(_pop(queue, 0), 0, by_extender=True)
        queue.move(happening, 50)
        assert _order(queue, 50) == ["a"]


def test_what_helps_only_up_to_a_priority_wakes_nobody_above_it() -> None:
    queue = _queue(_view("a", priority=1), _view("b", priority=9))
    for _ in range(2):
        queue.refused(_pop(queue, 0), 0, by_extender=False)
    queue.move(Happening.POD_GONE, 50, up_to=5)
    assert _order(queue, 50) == ["a"]


def test_its_own_change_wakes_a_pod() -> None:
    queue = _queue(_view("a"))
    queue.refused(_pop(queue, 0), 0, by_extender=True)
    changed = _view("a")
    changed.content["metadata"]["annotations"] = {"poke": "1"}
    queue.update(changed, 50)
    waiting = _pop(queue, 50)
    assert waiting.view is changed


def test_changed_labels_wake_a_pod_that_kube_scheduler_refused() -> None:
    queue = _queue(_view("a"))
    queue.refused(_pop(queue, 0), 0, by_extender=False)
    changed = _view("a")
    changed.content["metadata"]["labels"] = {"a": "b"}
    queue.update(changed, 50)
    assert _order(queue, 50) == ["a"]


def test_back_off_ends_early_when_nobody_else_is_active() -> None:
    queue = _queue(_view("a"))
    queue.refused(_pop(queue, 0), 0, by_extender=True)
    queue.move(Happening.NODE_CHANGED, 0.1)
    queue.add(_view("b"), 0.1)
    assert _order(queue, 0.1) == ["b", "a"]


def test_back_off_over_the_order_is_by_priority_again() -> None:
    queue = _queue(_view("a", priority=5))
    queue.refused(_pop(queue, 0), 0, by_extender=True)
    queue.move(Happening.NODE_CHANGED, 0.1)
    queue.add(_view("b"), 0.1)
    assert _order(queue, 2) == ["a", "b"]


def test_pods_that_failed_in_the_same_second_go_by_priority() -> None:
    queue = _queue(_view("a"), _view("b", priority=5))
    second = _pop(queue, 0)
    first = _pop(queue, 0)
    queue.refused(first, 0.1, by_extender=True)
    queue.refused(second, 0.2, by_extender=True)
    queue.move(Happening.NODE_CHANGED, 0.3)
    assert _order(queue, 0.3) == ["b", "a"]


def test_back_off_grows_to_its_maximum() -> None:
    # As seen on the real one: again after 2, 5, 10 and 19 seconds.
    queue = _queue(_view("a"))
    times = [0.0]
    for _ in range(6):
        queue.failed(_pop(queue, times[-1]), times[-1])
        times.append(queue.next_due())
    assert times == [0, 2, 5, 10, 19, 30, 41]


def test_after_an_error_nothing_shortens_the_back_off() -> None:
    queue = _queue(_view("a"))
    queue.failed(_pop(queue, 0), 0)
    for happening in Happening:
        queue.move(happening, 0.5)
    queue.update(_view("a"), 0.5)
    assert queue.pop(1.9) is None
    assert _order(queue, 2.0) == ["a"]


def test_a_refusal_ends_a_row_of_errors() -> None:
    queue = _queue(_view("a"))
    now = 0.0
    for _ in range(3):
        queue.failed(_pop(queue, now), now)
        now = queue.next_due()
    queue.refused(_pop(queue, now), now, by_extender=True)
    queue.move(Happening.NODE_CHANGED, now)
    queue.failed(_pop(queue, now), now)
    assert queue.next_due() == now + 2


def test_what_happens_during_an_attempt_is_not_missed() -> None:
    queue = _queue(_view("a"))
    waiting = _pop(queue, 0)
    queue.move(Happening.NODE_CHANGED, 0.1)
    queue.refused(waiting, 0.2, by_extender=False)
    assert _order(queue, 0.2) == ["a"]


def test_what_does_not_help_during_an_attempt_is_forgotten() -> None:
    queue = _queue(_view("a"))
    waiting = _pop(queue, 0)
    queue.move(Happening.POD_ASSIGNED, 0.1)
    queue.refused(waiting, 0.2, by_extender=False)
    assert queue.pop(0.2) is None


def test_a_pod_that_went_during_its_attempt_does_not_come_back() -> None:
    queue = _queue(_view("a"))
    waiting = _pop(queue, 0)
    queue.remove("a")
    queue.refused(waiting, 0.2, by_extender=True)
    queue.move(Happening.NODE_CHANGED, 10)
    assert queue.pop(10) is None
    assert len(queue) == 0


def test_a_forgotten_pod_is_tried_again_after_minutes() -> None:
    queue = _queue(_view("a"))
    queue.refused(_pop(queue, 0), 0, by_extender=False)
    assert queue.next_due() == LEFTOVER_SECONDS
    assert queue.pop(LEFTOVER_SECONDS - 1) is None
    assert _order(queue, LEFTOVER_SECONDS) == ["a"]


def test_nobody_is_due_in_an_empty_queue() -> None:
    assert _queue().next_due() == math.inf


def test_nominations_are_those_of_who_waits() -> None:
    queue = _queue(_view("a", nominated="n1"), _view("b"))
    assert [view.pod.uid for view in queue.nominated()] == ["a"]
    waiting = _pop(queue, 0)
    assert queue.nominated() == [waiting.view]
    queue.remove("a")
    assert queue.nominated() == []


def test_a_failed_binding_brings_a_pod_back() -> None:
    queue = _queue(_view("a"))
    waiting = _pop(queue, 0)
    queue.remove("a")
    waiting.view = replace(waiting.view)
    queue.failed(waiting, 5)
    assert queue.pop(6.5) is None
    assert _order(queue, 7) == ["a"]

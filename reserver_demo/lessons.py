"""The lessons of the guided tour: commands, and checks of their effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from reserver_demo.scenario import FILLERS, Stage
from reserver_demo.workdir import create_command


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A lesson.

    Attributes:
        title: the topic.
        text: the introduction.
        command: the command to type.
        came_true: returns whether the effect has occurred, given the command's exit status.
        learned: the explanation of the effect.
        word: a word that the command must contain if only its exit status is checked; else empty.
    """

    title: str
    text: str
    command: str
    came_true: Callable[[int], Awaitable[bool]]
    learned: str
    word: str = ""

    def is_about(self, typed: str) -> bool:
        """Return whether a typed command may be the command of this lesson."""
        return not self.word or self.word in typed.split()


async def _succeeded(status: int) -> bool:
    return status == 0


async def _was_refused(status: int) -> bool:
    return status != 0


async def set_up(stage: Stage) -> None:
    """Create three workers, two of them with a large pod."""
    await stage.add_workers()
    await stage.create_pods(FILLERS, ("worker-1", "worker-2"))


def lessons(stage: Stage) -> tuple[Lesson, ...]:
    """Return the lessons, for a cluster after `set_up`."""
    return (*_holding(stage), *_landing(stage))


def _holding(stage: Stage) -> tuple[Lesson, ...]:
    """Return the first lessons, about holding capacity."""
    return (
        Lesson(
            title="what is there",
            text="Three workers with 8 CPUs each. Two pods have 5 CPUs of worker-1 and worker-2.",
            command="reserver top nodes",
            came_true=_succeeded,
            word="top",
            learned="You see what pods use, what reservations hold, and what is free.",
        ),
        Lesson(
            title="hold capacity",
            text="web-0 will come later and needs 4 CPUs. Hold them on worker-3.",
            command="reserver create web --node worker-3 --owner pod/web-0 -n default --cpu 4",
            came_true=lambda _: stage.is_held("web"),
            learned="From now on nobody but web-0 gets them, whatever is scheduled meanwhile.",
        ),
        Lesson(
            title="owners by label",
            text="An owner can also be a label or a controller. Hold 2 more CPUs.",
            command="reserver create batch --node worker-3 --owner app=batch -n default --cpu 2",
            came_true=lambda _: stage.is_held("batch"),
            learned="6 of worker-3's 8 CPUs are held. Nothing runs there.",
        ),
    )


def _landing(stage: Stage) -> tuple[Lesson, ...]:
    """Return the other lessons, about pods of owners and of others."""
    return (
        Lesson(
            title="a stranger comes",
            text="A pod that owns nothing wants 4 CPUs. worker-3 has them, but not for it.",
            command=create_command("stranger"),
            came_true=lambda _: stage.is_refused_for_a_hold("stranger"),
            learned="It stays Pending, and its status says which reservations keep it away.",
        ),
        Lesson(
            title="why a pod waits",
            text="Ask why, and for how long.",
            command="reserver explain pod default/stranger",
            came_true=_succeeded,
            word="explain",
            learned="When enough of these holds end, the pod is tried again within a second.",
        ),
        Lesson(
            title="the owner comes",
            text="web-0 exists at last. It needs no annotation and no other scheduler.",
            command=create_command("web-0"),
            came_true=lambda _: stage.are_on({"web-0": "worker-3"}),
            learned="It has landed on its seat. The reservation is claimed, so it is over.",
        ),
        Lesson(
            title="release",
            text="The batch job will not come. Release what is held for it.",
            command="reserver release batch",
            came_true=lambda _: stage.are_on({"stranger": "worker-3"}),
            learned="That freed 4 CPUs, and the stranger has landed on them at once.",
        ),
        Lesson(
            title="mistakes",
            text="A hold of 64 CPUs never fits on a node of 8. It would only keep others away.",
            command="reserver create typo --node worker-3 --owner pod/a --cpu 64",
            came_true=_was_refused,
            word="create",
            learned="Reserver refuses what can never fit, and says what to do instead.",
        ),
    )

"""Judges that lent room comes back: no borrower costs an owner its seat."""

from __future__ import annotations

from collections.abc import Iterator

from hack.promises.case import Case
from hack.promises.history import Moment
from hack.promises.life import Life
from hack.promises.pods import Pod
from hack.promises.report import Kind, Violation
from hack.promises.room import fits
from hack.promises.timing import Span


def kept_out(case: Case) -> Iterator[Violation]:
    """Yield owners that waited for a seat which others borrow, and nobody was recalled."""
    history = case.world.history
    for pod in case.world.pods:
        refused = next((s.moment for s in pod.states if s.refusal and not s.node), None)
        if refused is None or pod.scheduler not in case.rules.schedulers:
            continue
        back = [each.until for each in (*history.outages, *case.rules.pauses)]
        deadline = max([refused.at, *back]) + case.rules.patience_s
        ends = [each.at for each in (pod.binding and pod.binding.moment, pod.gone) if each]
        if deadline < min([history.end, *ends]):
            moment = Moment(history.revision_at(deadline), deadline)
            yield from _not_recalled(case, pod, Span(refused.at, moment.revision, deadline))


def _not_recalled(case: Case, pod: Pod, span: Span) -> Iterator[Violation]:
    moment = Moment(span.revision, span.until)
    for life, node in _seats(case, pod, span):
        borrowers = case.borrowers(node, span.revision, life)
        if any(each.leaves and each.leaves <= moment for each in borrowers):
            continue
        if is_in_the_way(case, pod, node, moment, life):
            yield Violation(
                kind=Kind.KEPT_OUT,
                revision=moment.revision,
                at=moment.at,
                node=node,
                pod=pod.name,
                entry=str(life.ref),
                sums={"borrowers": " ".join(sorted(each.name for each in borrowers))},
                text="refused because others borrow its seat, and none of them was recalled",
            )


def _seats(case: Case, pod: Pod, span: Span) -> Iterator[tuple[Life, str]]:
    """Yield where a pod certainly had a seat that is lent."""
    for life in case.seats(pod, span):
        yield from ((life, node) for node in life.nodes if case.is_placed(life, node, span))
    yield from ((life, node) for life, node in case.offers(pod, span) if node)


def is_in_the_way(case: Case, pod: Pod, node: str, moment: Moment, seat: Life) -> bool:
    """Return whether a pod certainly had its seat if nobody borrowed it."""
    borrowers = case.borrowers(node, moment.revision, seat)
    if not borrowers or fits(case, pod, node, moment, seat):
        return False
    return fits(case, pod, node, moment, seat, gone=borrowers)

"""Is each slot claimed once, is each claim recorded, and does it end its hold for good?"""

from __future__ import annotations

from collections.abc import Iterator

from hack.promises.case import Case
from hack.promises.life import Life
from hack.promises.report import Kind, Violation
from hack.promises.slots import Claim


def claimed_twice(case: Case) -> Iterator[Violation]:
    """Yield the entries of which a pod was given a slot, and all had been claimed before."""
    for life, claims in case.claims.items():
        sure = sorted((c for c in claims if c.sure), key=lambda c: c.moment)
        for index, claim in enumerate(sure):
            if not case.decides(claim.pod):
                continue  # What it says that it claims is nobody's decision.
            others = [c for c in sure[:index] if _keeps_its_slot(case, c, claim)]
            if len(others) >= life.entry.most_slots:
                yield _about(
                    Kind.CLAIMED_TWICE,
                    life,
                    claim,
                    text=f"claimed by {', '.join(c.pod.name for c in others)} before",
                    sums={"slots": life.entry.most_slots},
                )


def _keeps_its_slot(case: Case, before: Claim, now: Claim) -> bool:
    """Return whether a slot that a pod took was still its own when another one took one."""
    if before.back and before.back <= now.moment:
        return False
    if before.pod.gone is None or before.pod.gone > now.moment or before.back:
        return True
    # For good, unless it is forgotten; and a successor of the same name is its heir.
    return before.pod.name != now.pod.name and not _may_be_forgotten(case, before, now.moment.at)


def _may_be_forgotten(case: Case, claim: Claim, at: float) -> bool:
    """Return whether Reserver may not know at a time of a claim whose pod is gone."""
    rules, outages = case.rules, case.world.history.outages
    if any(end <= at <= end + rules.past_s for end in rules.ends):
        return True
    is_lost = any(claim.moment.at <= o.until and o.since <= at for o in outages)
    return is_lost and not _is_told(case, claim)


def _is_told(case: Case, claim: Claim) -> bool:
    """Return whether a claim is written down for certain, whatever became of the pod."""
    gone = claim.pod.gone
    return gone is None or gone.at - claim.moment.at > case.rules.recorded_s


def claimed_wrongly(case: Case) -> Iterator[Violation]:
    """Yield the pods that claimed slots which were not theirs to take."""
    for pod in case.world.pods:
        if pod.binding is None or not case.decides(pod):
            continue
        span = case.timing.span(pod.binding)
        named = {life.name for life in case.world.naming(pod)}
        claimed: dict[str, list[Life]] = {}
        for life in case.matches(pod, span):
            if life.name in pod.claims - named:
                claimed.setdefault(life.name, []).append(life)
        claim = Claim(pod, pod.binding.moment, sure=False)
        for name in list(claimed)[1:]:
            text = f"claims a slot of {next(iter(claimed))} as well, and neither names it"
            yield _about(Kind.CLAIMED_WRONGLY, claimed[name][0], claim, text=text)
        for lives in claimed.values():
            # An entry that was edited just now may be meant as it was before.
            if all(life.entry.node not in {"", pod.binding.node} for life in lives):
                text = f"claims a slot there, and landed on {pod.binding.node}"
                yield _about(Kind.CLAIMED_WRONGLY, lives[0], claim, text=text)


def not_recorded(case: Case) -> Iterator[Violation]:
    """Yield the pods that landed through Reserver and do not say that they claimed a slot."""
    for pod in case.world.pods:
        if pod.binding is None or not case.decides(pod):
            continue
        span, claim = case.timing.span(pod.binding), Claim(pod, pod.binding.moment, sure=False)
        for life in case.live(pod, span):
            if life.name not in pod.claims:
                text = "its binding says nothing of a reservation that names it"
                yield _about(Kind.CLAIM_NOT_RECORDED, life, claim, text=text)
        here = [life for life, node in case.offers(pod, span) if node == pod.binding.node]
        if here and not any(life.name in pod.claims for life in case.matches(pod, span)):
            text = "its binding says nothing of a reservation that it matches, with a slot there"
            yield _about(Kind.CLAIM_NOT_RECORDED, here[0], claim, text=text)


def left_over(case: Case) -> Iterator[Violation]:
    """Yield the entries that stand in the store at the end though they are over."""
    history, rules = case.world.history, case.rules
    reachable = max((o.until for o in history.outages), default=0.0)
    for life in case.world.lives:
        if life.gone is not None or life.entry.broken or life.comes_again:
            continue
        claims = [c for c in case.claims.get(life, ()) if c.sure and _is_told(case, c)]
        last = max(claims, key=lambda c: c.moment) if claims else None
        since_claim = history.end - max(last.moment.at, reachable) if last else 0.0
        since_end = history.end - max(min(case.must_end(life), history.end), reachable)
        is_claimed = len(claims) >= life.entry.slots and not life.entry.reusable
        if is_claimed and since_claim > rules.cleaner_s:
            kind = Kind.CLAIM_LOST if since_claim > rules.lost_s else Kind.LEFT_OVER
            text = "still in the store though every slot is claimed"
            yield _about(kind, life, last, text=text, sums={"seconds": round(since_claim)})
        elif since_end > rules.cleaner_s:
            text = "still in the store though it has expired, or was idle"
            sums = {"seconds": round(since_end)}
            yield _about(Kind.LEFT_OVER, life, None, text=text, sums=sums)


def _about(
    kind: Kind, life: Life, claim: Claim | None, *, text: str, sums: dict[str, int] | None = None
) -> Violation:
    moment = claim.moment if claim else life.written
    return Violation(
        kind=kind,
        revision=moment.revision,
        at=moment.at,
        node=life.node,
        pod=claim.pod.name if claim else "",
        entry=str(life.ref),
        sums=sums or {},
        text=text,
    )

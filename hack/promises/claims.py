"""Is each slot claimed once, is each claim recorded, and does it end its hold for good?"""

from __future__ import annotations

from collections.abc import Iterator

from hack.promises.case import Case, Claim
from hack.promises.report import Kind, Violation
from hack.promises.world import Life


def claimed_twice(case: Case) -> Iterator[Violation]:
    """Yield the entries that more pods claimed than they have slots."""
    for life, claims in case.claims.items():
        sure = sorted((c for c in claims if c.sure), key=lambda c: c.moment)
        for index, claim in enumerate(sure):
            others = [c for c in sure[:index] if c.pod.gone is None or c.pod.gone > claim.moment]
            if len(others) >= life.entry.slots:
                yield _about(
                    Kind.CLAIMED_TWICE,
                    life,
                    claim,
                    text=f"claimed by {', '.join(c.pod.name for c in others)} before",
                    sums={"slots": life.entry.slots},
                )


def not_recorded(case: Case) -> Iterator[Violation]:
    """Yield the pods that landed through Reserver and do not say that they ended a reservation."""
    for pod in case.world.pods:
        if pod.binding is None or not case.decides(pod):
            continue
        span = case.span(pod.binding)
        for life in case.live(pod, span):
            if str(life.place) not in pod.binding.claims:
                claim = Claim(pod, pod.binding.moment, sure=False)
                text = "its binding says nothing of a reservation that names it"
                yield _about(Kind.CLAIM_NOT_RECORDED, life, claim, text=text)


def left_over(case: Case) -> Iterator[Violation]:
    """Yield the entries that stand in the store at the end though they are over."""
    history, rules = case.world.history, case.rules
    reachable = max((o.until for o in history.outages), default=0.0)
    for life in case.world.lives:
        if life.gone is not None or life.entry.broken:
            continue
        claims = [c for c in case.claims.get(life, ()) if c.sure and c.pod.gone is None]
        last = max(claims, key=lambda c: c.moment) if claims else None
        since_claim = history.end - max(last.moment.at, reachable) if last else 0.0
        since_expiry = history.end - max(life.expires or history.end, reachable)
        if len(claims) >= life.entry.slots and since_claim > rules.cleaner_s:
            kind = Kind.CLAIM_LOST if since_claim > rules.lost_s else Kind.LEFT_OVER
            text = "still in the store though every slot is claimed"
            yield _about(kind, life, last, text=text, sums={"seconds": round(since_claim)})
        elif since_expiry > rules.cleaner_s:
            text = "still in the store though it has expired"
            sums = {"seconds": round(since_expiry)}
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
        entry=str(life.place),
        sums=sums or {},
        text=text,
    )

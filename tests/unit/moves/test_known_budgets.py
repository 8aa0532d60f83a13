"""What is read of PodDisruptionBudgets; beyond a bound their namespace evicts nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from reserver.base.pacer import outcome
from reserver.cluster.budgets import Budget, Budgets
from reserver.cluster.labels import EVERYTHING, Requirement, Selector
from reserver.cluster.pod import Controller, Pod, PodName
from reserver.k8s.objects import budgets as bounds
from reserver.k8s.objects.budgets import MOST_TERMS, MOST_VALUES, BudgetObject
from reserver.k8s.objects.objects import encode
from reserver.moves import known_budgets
from reserver.moves.arbitration import arbitrate
from reserver.moves.known_budgets import KnownBudgets
from reserver.moves.phases import MovePhase
from tests.builders import pod
from tests.cpu import MOST_S, longest_step_s
from tests.steps import lines
from tests.unit.moves.arbitration.contenders import ANY, beginning, contender, ruled
from tests.unit.moves.build import NOW

WEB = {"matchLabels": {"app": "web"}}


def raw(selector: Any, name: str = "web", namespace: str = "shop", **metadata: Any) -> msgspec.Raw:
    named = {"name": name, "namespace": namespace, **metadata}
    status = {"disruptionsAllowed": 1}
    return msgspec.Raw(
        encode({"metadata": named, "spec": {"selector": selector}, "status": status})
    )


def terms(number: int, *values: str) -> dict[str, Any]:
    term = {"key": "a", "operator": "NotIn" if values else "DoesNotExist", "values": values}
    return {"matchExpressions": [{**term, "key": f"a{n}"} for n in range(number)]}


def shown(*items: msgspec.Raw) -> KnownBudgets:
    known = KnownBudgets(lambda: None)
    view = known.view()
    for item in items:
        outcome(view.changed(item))
    return known


def refusal(known: KnownBudgets, leaving: Pod | None = None) -> str:
    return Budgets(known.all()).refusal(leaving or pod("web-0", labels={"app": "web"}))


@pytest.mark.parametrize(
    "selector",
    [
        WEB,
        {},
        None,
        terms(MOST_TERMS),
        terms(1, *(f"v{n}" for n in range(MOST_VALUES))),
        {**terms(MOST_TERMS - 1), **WEB},
    ],
)
def test_a_budget_within_the_bounds_is_read(selector: Any) -> None:
    (budget,) = shown(raw(selector)).all()
    assert (budget.allowed, budget.problem) == (1, "")


@pytest.mark.parametrize(
    ("selector", "metadata"),
    [
        (terms(MOST_TERMS + 1), {}),
        ({**terms(MOST_TERMS), **WEB}, {}),
        ({"matchLabels": {f"a{n}": "b" for n in range(MOST_TERMS + 1)}}, {}),
        (terms(1, *(f"v{n}" for n in range(MOST_VALUES + 1))), {}),
        (terms(2, *(f"v{n}" for n in range(MOST_VALUES // 2 + 1))), {}),
        ({**terms(1, *(f"v{n}" for n in range(MOST_VALUES))), **WEB}, {}),
        (terms(70_000), {}),
        (WEB, {"annotations": {"a": "b" * BudgetObject.MOST_BYTES}}),
        (7, {}),
        ({"matchLabels": {"app": None}}, {}),
    ],
)
def test_one_beyond_a_bound_allows_no_eviction_in_its_namespace_and_says_why(
    selector: Any, metadata: dict[str, Any]
) -> None:
    known = shown(raw(WEB), raw(WEB, "a", "farm"), raw(selector, "huge", **metadata))
    for labels in ({"app": "web"}, {"app": "db"}, {}):
        said = refusal(known, pod("web-0", labels=labels))
        assert said.startswith("the PodDisruptionBudget huge is not read")
        assert f"under {BudgetObject.MOST_BYTES} bytes" in said
        assert f"{MOST_TERMS} requirements and {MOST_VALUES} values" in said
    assert not refusal(known, pod("a", namespace="farm", labels={"app": "web"}))
    assert not refusal(known, pod("vm-0", controller=Controller("VirtualMachineInstance", "vm")))
    outcome(known.view().changed(raw({}, "huge")))
    assert "2 PodDisruptionBudgets select it" in refusal(known)
    known.drop(PodName("shop", "huge"))
    assert not refusal(known)


def test_a_namespace_has_so_many_and_costs_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_budgets, "MOST_BUDGETS", 2)
    none = {"matchLabels": {"app": "none"}}
    known = shown(*(raw(none, name) for name in "abc"), raw(terms(99), "d"), raw(none, "e", "farm"))
    assert "c is not read" in refusal(known)
    assert "1,000 of a namespace are read: delete some" in refusal(known)
    assert not refusal(known, pod("a", namespace="farm"))
    known.drop(PodName("shop", "a"))
    known.drop(PodName("shop", "a"))
    outcome(known.view().changed(raw(none, "c")))
    assert "d is not read" in refusal(known)
    outcome(known.view().changed(raw(WEB, "b")))  # One that is read stays so.
    assert {budget.name.name for budget in known.all() if budget.problem} == {"d"}
    outcome(known.view().changed(raw(none, "d")))  # It is small now, but others are read.
    assert "delete some" in refusal(known)
    for name in "bcd":
        known.drop(PodName("shop", name))
    assert not refusal(known)
    assert known._read_in == {"farm": 1}


def test_only_a_change_is_told() -> None:
    told: list[None] = []
    known = KnownBudgets(lambda: told.append(None))
    for item in (raw(WEB), raw(WEB), raw(terms(99)), raw(terms(98)), raw(WEB)):
        outcome(known.view().changed(item))
    known.drop(PodName("shop", "web"))
    known.drop(PodName("shop", "web"))
    assert len(told) == 4


def test_a_move_waits_and_names_the_budget() -> None:
    huge = shown(raw(terms(MOST_TERMS + 1), "huge")).all()
    rulings = ruled(contender("a"), budgets=huge)
    assert not beginning(rulings)
    assert rulings["a"].turn.is_blocked
    assert "PodDisruptionBudget huge" in rulings["a"].turn.why


def test_a_pass_gives_way_however_many_moves_have_seats_and_budgets_they_meet() -> None:
    strange = Selector(
        tuple(Requirement(f"a{n}", "NotIn", frozenset({"b"})) for n in range(MOST_TERMS))
    )
    budgets = [
        Budget(name=PodName("shop", f"b{n}"), selector=strange) for n in range(bounds.MOST_BUDGETS)
    ]
    moves = [contender(f"m{n}", MovePhase.RESERVING, app=str(n)) for n in range(200)]
    assert longest_step_s(lambda: iter(arbitrate(moves, budgets, {}, NOW, ANY))) < MOST_S
    steps = arbitrate(moves, budgets, {}, NOW, ANY)
    counted = [lines(lambda: next(steps, None)) for _ in range(len(budgets) + len(moves))]
    one = lines(lambda: Budgets(budgets).refusal(moves[0].pod))  # type: ignore[arg-type]
    assert max(counted) < 2 * one


def test_one_that_is_not_read_selects_everything() -> None:
    (huge,) = shown(raw(terms(99))).all()
    assert (huge.selector, huge.allowed, huge.spares_unhealthy) == (EVERYTHING, 0, False)

"""A spec is the same in the client, on the wire, and as people write it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import yaml
from hypothesis import given
from hypothesis import strategies as st

from reserver.cli import serialization
from reserver.client import (
    ControllerOwner,
    LabelRequirement,
    Lend,
    OwnerSelector,
    PodOwner,
    Policy,
    ReplacedPod,
    Spec,
)
from reserver.client.messages import read_spec, write_spec
from reserver.stores.codec import document
from reserver.v1 import reservation_pb2 as pb

NOW = 1_800_000_000.0

names = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,2}", fullmatch=True)
labels = st.from_regex(r"[A-Za-z0-9]{1,10}", fullmatch=True)
moments = st.integers(19 * 10**8, 37 * 10**8).map(lambda s: datetime.fromtimestamp(s, UTC))
requirements = st.one_of(
    st.builds(
        LabelRequirement,
        labels,
        st.sampled_from(["In", "NotIn"]),
        st.lists(labels, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(LabelRequirement, labels, st.sampled_from(["Exists", "DoesNotExist"]), st.just(())),
)
rules = st.one_of(
    st.builds(
        OwnerSelector,
        namespace=names,
        controller=st.builds(ControllerOwner, st.sampled_from(["ReplicaSet", "Job"]), names),
        match_labels=st.dictionaries(labels, labels, max_size=2),
        match_expressions=st.lists(requirements, max_size=2).map(tuple),
    ),
    st.builds(
        OwnerSelector,
        namespace=names,
        pod=st.one_of(st.just(""), names),
        match_labels=st.dictionaries(labels, labels, min_size=1, max_size=2),
        match_expressions=st.lists(requirements, max_size=2).map(tuple),
        replaces=st.one_of(
            st.none(), st.builds(ReplacedPod, names, st.lists(names, max_size=2).map(tuple))
        ),
    ),
)


owners = st.one_of(st.builds(PodOwner, namespace=names, name=names), rules)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    starts = draw(st.one_of(st.none(), moments))
    later = st.integers(1, 10**7).map(lambda s: timedelta(seconds=s))
    ends = draw(later if starts else st.one_of(st.none(), later))
    begin = starts or datetime(2030, 1, 1, tzinfo=UTC)
    lasting = st.integers(0, 3 * 10**12).map(lambda ms: timedelta(milliseconds=ms))
    ttl = draw(st.one_of(st.none(), lasting)) if ends is None and starts is None else None
    preemptible = draw(st.booleans())
    node, slots, refill = draw(st.just("") | names), draw(st.integers(1, 100)), draw(st.booleans())
    idle = st.integers(60_000, 8_760 * 3_600_000).map(lambda ms: timedelta(milliseconds=ms))
    is_refilled = refill and not node
    return Spec(
        owners=tuple(draw(st.lists(owners, min_size=1, max_size=3))),
        node=node,
        resources={"cpu": draw(st.sampled_from(["1", "500m", "1.5"]))}
        | draw(
            st.dictionaries(
                names.map(lambda n: f"a.b/{n}"), st.sampled_from(["1", "2"]), max_size=2
            )
        ),
        slots=slots,
        starts_at=starts,
        expires_at=None if ends is None else begin + ends,
        ttl=ttl,
        policy=draw(st.sampled_from(Policy)),
        reusable=draw(st.booleans()),
        refill=is_refilled,
        refill_up_to=draw(st.none() | st.integers(slots, 1000)) if is_refilled else None,
        release_if_idle=draw(st.none() | idle),
        lend=draw(st.none() | st.builds(Lend, st.integers(-5, 5))) if not preemptible else None,
        preemptible=preemptible,
        priority=draw(st.one_of(st.none(), st.integers(-100, 100))) if preemptible else None,
    )


@given(specs())
def test_a_spec_survives_the_wire(spec: Spec) -> None:
    sent = write_spec(spec).SerializeToString()
    assert read_spec(pb.ReservationSpec.FromString(sent)) == spec


@given(specs())
def test_a_spec_survives_a_file(spec: Spec) -> None:
    text = yaml.safe_dump(serialization.show_spec(spec))
    assert serialization.read(document.parse(text), "a", "other", NOW) == spec

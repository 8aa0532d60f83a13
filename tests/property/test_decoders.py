"""Whatever is sent or written: it is read, or refused with InvalidInput, and nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.fuzz import shapes
from hack.fuzz.checks import SEEN, check_entries, try_to
from hack.fuzz.decoders import DECODERS, Decoder
from reserver.k8s.objects.objects import encode
from reserver.reservations.reservation import Ref
from reserver.stores.codec import document
from reserver.stores.configmap import entry_edits
from reserver.stores.configmap.entries import read_key

numbers = st.integers() | st.floats() | st.sampled_from([0, -1, 2**53, 2**64, 10**30, 1e308])
quantities = st.from_regex(r"[+-]?[0-9]{0,5}\.?[0-9]{0,3}([numkMGTPE]i?|[eE][+-]?[0-9]{1,3})?")
moments = st.sampled_from(
    ["2030-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "1h", "9" * 9 + "h"]
)
texts = st.text(max_size=12) | quantities | moments | st.sampled_from(["a", "Require", ""])
scalars = st.none() | st.booleans() | numbers | texts
anything = scalars | st.lists(scalars, max_size=3) | st.dictionaries(texts, scalars, max_size=3)

Path = tuple[str | int, ...]


def paths(shape: object) -> list[Path]:
    """Return the way to each value in a document."""
    found: list[Path] = [()]
    if isinstance(shape, dict | list):
        fields = shape.items() if isinstance(shape, dict) else enumerate(shape)
        found += [(key, *rest) for key, value in fields for rest in paths(value)]
    return found


def exchanged(shape: object, path: Path, value: object) -> object:
    """Return a document with another value at a path; the same one without the path."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(shape, dict) and key in shape:
        return shape | {key: exchanged(shape[key], rest, value)}
    if isinstance(shape, list) and isinstance(key, int) and key < len(shape):
        return [*shape[:key], exchanged(shape[key], rest, value), *shape[key + 1 :]]
    return shape


@st.composite
def nearly(draw: st.DrawFn, shape: object) -> object:
    """Return a document in which up to three values were exchanged for anything."""
    ways = st.sampled_from(paths(shape))
    for path, value in draw(st.lists(st.tuples(ways, anything), max_size=3)):
        shape = exchanged(shape, path, value)
    return shape


decoders = pytest.mark.parametrize("decoder", DECODERS.values(), ids=DECODERS.keys())


@decoders
@given(data=st.data())
def test_objects_that_are_nearly_right_are_read_or_refused(
    decoder: Decoder, data: st.DataObject
) -> None:
    shape = data.draw(st.sampled_from(decoder.documents()))
    try_to(decoder.read, json.dumps(data.draw(nearly(shape))).encode())


@decoders
@given(data=st.data())
def test_objects_that_are_cut_or_changed_by_some_bytes_are_read_or_refused(
    decoder: Decoder, data: st.DataObject
) -> None:
    raw = data.draw(st.sampled_from(decoder.seeds))
    start = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(start, len(raw)))
    try_to(decoder.read, raw[:start] + data.draw(st.binary(max_size=6)) + raw[end:])


@decoders
@given(raw=st.binary(max_size=200))
def test_bytes_are_read_or_refused(decoder: Decoder, raw: bytes) -> None:
    try_to(decoder.read, raw)


specs = nearly(shapes.SPEC)
items = st.lists(st.sampled_from([shapes.SHORT_ITEM, shapes.LONG_ITEM]).flatmap(nearly), max_size=4)
yaml_texts = st.text(st.sampled_from("ab:-?&*!|>%@[]{},#'\"\\ \t\n0159.exn~<="), max_size=40)
written = st.one_of(
    (specs | items).map(json.dumps),
    specs.map(lambda spec: "---\n" + json.dumps(spec)),
    yaml_texts,
    st.text(max_size=40),
)
keys = st.sampled_from(["web", "worker-1", "Web", ""])


@given(key=keys, text=written)
def test_whatever_is_written_into_the_store_is_enforced_or_refused(key: str, text: str) -> None:
    check_entries(read_key(Ref("shop", "store", key), text, SEEN))


@given(text=written, data=st.data())
def test_a_value_changed_by_some_characters_is_enforced_or_refused(
    text: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(text)))
    changed = text[:at] + data.draw(yaml_texts | st.text(max_size=4)) + text[at + 1 :]
    check_entries(read_key(Ref("shop", "store", "web"), changed, SEEN))


@given(text=yaml_texts | st.text())
def test_text_is_a_value_or_is_refused(text: str) -> None:
    try_to(lambda raw: document.parse(raw.decode()), text.encode())


@given(written=items, after=st.sets(st.integers(0, 10)))
def test_removing_what_is_over_changes_nothing_else(written: list[Any], after: set[int]) -> None:
    ref = Ref("shop", "store", "worker-1")
    text = json.dumps(written)
    before = read_key(ref, text, SEEN)
    over = {r.ref: r for number, r in enumerate(before.reservations) if number in after}
    if not before.reservations:
        return
    edit = entry_edits.remove(ref, text, over.values())
    if edit is None:
        assert not over
        return
    encode(edit.patch())
    entries = read_key(ref, edit.value or "[]", SEEN)
    assert not any(r in entries.reservations for r in over.values())
    others = [r for r in entries.reservations if r.ref not in over]  # Of two of a name, the first.
    assert others == [r for r in before.reservations if r.ref not in over]


@given(written=specs)
def test_a_stamp_changes_nothing_but_that_it_is_written_down(written: Any) -> None:
    ref = Ref("shop", "store", "web")
    for text in (json.dumps(written), "---\n" + json.dumps(written, indent=1)):
        before = read_key(ref, text, SEEN)
        if before.unstamped:
            edit = entry_edits.complete(ref, text, before.reservations[0], ())
            if edit is not None:
                encode(edit.patch())
                after = read_key(ref, edit.value or "", SEEN + 100_000)
                assert after.reservations == before.reservations

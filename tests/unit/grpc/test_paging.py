"""Pages of lists: complete, in order, and small enough for any client."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reserver.base.pacer import Pacer
from reserver.grpc.selection import PAGE_BYTES, PageToken
from reserver.v1 import capacity_pb2 as capacity
from reserver.v1 import reservation_pb2 as pb
from tests.builders import node, state_of
from tests.unit.grpc.services import service_of

SIZES = (0, 1, PAGE_BYTES // 3, PAGE_BYTES, 2 * PAGE_BYTES)
NAMES = st.text("abc/", min_size=1, max_size=4)


@given(st.dictionaries(NAMES, st.sampled_from(SIZES), max_size=8), st.integers(1, 4), st.data())
async def test_the_pages_have_each_selected_item_once_in_order_and_a_bound(
    items: dict[str, int], most: int, data: st.DataObject
) -> None:
    selected = data.draw(st.sets(st.sampled_from(sorted(items) or [""])))
    pages: list[list[pb.Reservation]] = []
    token, read = "", 0
    while not pages or token:
        named = [(name, (name, size)) for name, size in items.items()]

        def show(item: tuple[str, int]) -> pb.Reservation | None:
            nonlocal read
            name, size = item
            if name not in selected:
                return None
            read += 1
            return pb.Reservation(name=name, author="a" * size)

        page, token = await PageToken(token, most).read(named, show, Pacer())
        pages.append(page)
    found = [each.name for page in pages for each in page]
    assert found == sorted(selected & items.keys())
    assert read < len(found) + len(pages)  # At most one item beyond each page but the last.
    for number, page in enumerate(pages):
        assert 0 < len(page) <= most or not found
        assert len(page) <= 1 or sum(each.ByteSize() for each in page) <= PAGE_BYTES
        if number:  # The page before ended because of a bound.
            before = pages[number - 1]
            size = sum(each.ByteSize() for each in (*before, page[0]))
            assert len(before) == most or size > PAGE_BYTES


async def test_nodes_with_many_resources_fit_into_the_message_that_a_client_takes() -> None:
    devices = {f"example.com/device-number-{number}": "100" for number in range(250)}
    nodes = (node(f"n{number}", labels={}, taints=(), cpu="4", **devices) for number in range(100))
    service, token = service_of(state=state_of(*nodes))._capacity, ""
    names: list[str] = []
    while not names or token:
        request = capacity.ListNodesRequest(page_size=1000, page_token=token)
        context: Any = None
        answer = await service.ListNodes(request, context)
        assert answer.ByteSize() <= PAGE_BYTES + 100
        names += [each.node for each in answer.nodes]
        token = answer.next_page_token
    assert names == sorted(f"n{number}" for number in range(100))

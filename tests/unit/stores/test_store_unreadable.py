"""Values of data keys that cannot be read, or not in time, are refused as a whole."""

import time
from collections.abc import Callable

import pytest

from reserver.stores.entries import Entries
from tests.cpu import MOST_S, least_cpu_s
from tests.unit.stores.written import YAML, item, items, one, read, refusal, spec


@pytest.mark.parametrize("key", ["web", "worker-1"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param(" \n\t", "empty", id="blank"),
        pytest.param("{", "line 1", id="JSON that breaks off"),
        pytest.param('{"a": }', "line 1, column 7", id="JSON with a hole"),
        pytest.param('{"node": "a",}', "invalid JSON", id="a comma too many"),
        pytest.param("[] []", "invalid JSON", id="two documents of JSON"),
        pytest.param("{node: a}", "invalid JSON", id="YAML in braces"),
        pytest.param("node: [", "invalid YAML", id="YAML that breaks off"),
        pytest.param("a: b: c", "invalid YAML", id="YAML that is none"),
        pytest.param("a: 1\n---\nb: 2", "invalid YAML", id="two documents of YAML"),
        pytest.param("a:\n\tb: 1", "invalid YAML", id="a tab"),
        pytest.param("a: \x07", "invalid YAML", id="a control character"),
        pytest.param("!!python/object:os.system x", "tags", id="a tag of Python"),
        pytest.param("hello", "neither", id="a word"),
        pytest.param("42", "neither", id="a number"),
        pytest.param("true", "neither", id="a truth value"),
        pytest.param('{"node": NaN}', "NaN", id="not a number"),
        pytest.param('{"node": -Infinity}', "-Infinity", id="less than any number"),
        pytest.param("a: &x [1]\nb: *x", "aliases", id="an alias"),
        pytest.param('{"node": 1, "node": 1}', "'node' is given twice", id="twice in JSON"),
        pytest.param("node: a\nnode: a", "'node' is given twice", id="twice in YAML"),
        pytest.param("? [a]\n: b", "not text", id="a list for a name"),
        pytest.param("- {pod: a}", "has to be JSON", id="a list of YAML"),
    ],
)
def test_what_cannot_be_read_is_refused_as_a_whole(text: str, key: str, says: str) -> None:
    error = refusal(text, key)
    assert error.path == ""
    assert says in error.problem


@pytest.mark.parametrize(
    "value", ['!!int ""', '!!float ""', '!!timestamp "x"', '!!bool "x"', '!!int "0x"', "!!set {a}"]
)
@pytest.mark.parametrize("text", ["{}", "- {}", "node: {}", "? {}\n: 1"])
def test_a_yaml_tag_on_a_value_that_it_does_not_fit_is_refused(text: str, value: str) -> None:
    refusal(text.replace("{}", value), "worker-1")


@pytest.mark.parametrize(
    "text",
    [
        "0x{}",
        "- 0x{}",
        "slots: 0x{}",
        "- {{pod: a, namespace: b, mem: 1, expire: 1, cpu: 0x{}}}",
        "- {{pod: a, namespace: b, mem: 1, cpu: 1, expire: 0x{}}}",
        "- {{pod: 0x{}}}",
        "{{owners: [{{pod: {{name: a}}}}], node: n, resources: {{cpu: 0x{}}}}}",
    ],
)
def test_a_number_with_more_digits_than_python_writes_is_refused(text: str) -> None:
    refusal("---\n" + text.format("f" * 5000), "worker-1")


@pytest.mark.parametrize("digits", [30, 400, 4000, 5000, 100_000])
def test_a_huge_whole_number_is_refused_and_not_quoted_at_length(digits: int) -> None:
    for text in (spec(slots=7), spec(resources={"cpu": 7}), items(item(cpu=7))):
        error = refusal(text.replace("7", "9" * digits), "worker-1")
        assert len(str(error)) < 500


@pytest.mark.parametrize(
    "text",
    [
        '{"\\ud800": 1}',
        spec(policy="\ud800"),
        spec(node="\ud800"),
        spec(resources={"\ud800": "1"}),
        spec(resources={"cpu": "\ud800"}),
        spec(owners=[{"pod": {"name": "\ud800"}}]),
        spec(expiresAt="\ud800"),
        items(item(pod="\ud800")),
        items("\ud800"),
    ],
)
def test_half_a_character_is_refused_in_words_that_can_be_written(text: str) -> None:
    refusal(text, "worker-1")


@pytest.mark.parametrize("depth", [40, 500, 950, 5_000, 500_000])
@pytest.mark.parametrize(
    "around", ["{}", '{{"placement": {}}}', '[{{"pod": {}}}]', "- {}", "a: {}"]
)
def test_deep_nesting_is_refused(around: str, depth: int) -> None:
    refusal(around.format("[" * depth + "]" * depth), "worker-1")


def test_yaml_larger_than_64_kib_is_refused_and_json_is_read() -> None:
    assert "too many" in refusal(YAML + "#" + "x" * 65_536).problem
    assert one(spec() + " " * 65_536).node == "worker-1"


def quickly(text: str, key: str = "worker-1") -> Entries:
    """Read a value; assert that the read does not hold the event loop."""
    began = time.process_time()
    entries = read(text, key)
    assert time.process_time() - began < 2
    return entries


def test_a_mebibyte_of_entries_is_read_in_no_time() -> None:
    written = [item(pod=f"web-{number}") for number in range(9_000)]
    entries = quickly(items(*written))
    assert len(entries.reservations) == 9_000


def test_very_many_broken_entries_are_refused_in_no_time() -> None:
    entries = quickly(items(*[{}] * 10_000))
    assert (len(entries.problems), entries.more_problems) == (100, 9_900)


def test_a_list_of_more_items_than_one_node_has_use_for_is_refused_as_a_whole() -> None:
    (problem,) = quickly(items(*[{}] * 100_000)).problems
    assert "100000 items are too many" in str(problem)


@pytest.mark.parametrize("last", ["{}", "1e999", "{x", "NaN"])
def test_a_list_of_too_many_items_is_refused_within_a_tenth_of_a_second(
    last: str,
) -> None:
    """Also if msgspec refuses an item, and the items are read one by one."""

    def text(number: int) -> str:
        return "[" + "{}," * (340_000 + number) + last + "]"

    assert least_cpu_s(text, read) < 2 * MOST_S  # The text is read twice.
    assert read(text(0)).problems


def test_a_name_that_stands_twice_among_very_many_is_found_in_no_time() -> None:
    names = "".join(f'"k{number}":0,' for number in range(10_000))
    assert quickly("{" + names + '"z":0,"z":0}').problems


MANY: dict[str, Callable[[int], str]] = {
    "unknown fields": lambda n: spec(**{f"f{n}{field}": 1 for field in range(30_000)}),
    "misspelt fields": lambda n: spec(**{f"resource{n}{field}": 1 for field in range(20_000)}),
    "parts of a ttl": lambda n: spec(expiresAt=None, ttl=f"{n}m" + "1h" * 200_000),
    "tolerations": lambda n: spec(node=None, placement={"tolerations": [{}] * (130_000 + n)}),
}


@pytest.mark.parametrize("name", MANY)
def test_very_many_parts_of_an_entry_are_refused_within_a_tenth_of_a_second(name: str) -> None:
    assert least_cpu_s(MANY[name], read) < 2 * MOST_S
    refusal(MANY[name](0))


def test_a_long_name_of_a_resource_is_not_quoted_at_length() -> None:
    assert len(str(refusal(spec(resources={"x" * 100_000: "1"})))) < 500

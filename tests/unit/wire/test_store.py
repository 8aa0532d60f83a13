"""What people and managers write into a data key, and what becomes of it."""

import json
import time

import pytest

from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.terms import Policy
from reserver.wire.spec.entries import Entries, Problem, read_key

SEEN = 1_900_000_000.0
SPEC = {
    "owners": [{"pod": {"name": "web-0"}}],
    "resources": {"cpu": "2", "memory": "4Gi"},
    "node": "worker-1",
    "expiresAt": "2030-03-17T17:46:40Z",
}
SHORT = {"pod": "web-0", "namespace": "shop", "cpu": 2000, "mem": 4 * 2**30, "expire": 1899999999}
LONG = {
    "reservingPod": "web-0",
    "reservingPodNamespace": "shop",
    "cpuMilli": 2000,
    "memMilli": 4 * 2**30,
    "expireAt": 1899999999,
}


def read(text: str, key: str = "web") -> Entries:
    return read_key(Ref("shop", "store", key), text, SEEN)


def one(text: str, key: str = "web") -> Reservation:
    entries = read(text, key)
    assert entries.problems == ()
    (reservation,) = entries.reservations
    return reservation


def refusal(text: str, key: str = "web") -> InvalidInput:
    """Return the one problem, which has to be fit for a person and for the wire."""
    entries = read(text, key)
    assert entries.reservations == ()
    (problem,) = entries.problems
    return presentable(problem)


def presentable(problem: Problem) -> InvalidInput:
    str(problem).encode()
    assert problem.error.problem
    assert problem.error.remedy
    return problem.error


def spec(**changes: object) -> str:
    """Return the spec with some fields changed; None removes one."""
    return json.dumps({name: v for name, v in (SPEC | changes).items() if v is not None})


def items(*written: object) -> str:
    return json.dumps(written)


def item(**changes: object) -> dict[str, object]:
    return {name: v for name, v in (SHORT | changes).items() if v is not None}


# The forms read alike.

YAML = """\
# Held for the next release.
owners:
- pod: {name: web-0}
resources:
  cpu: 2
  memory: 4Gi
node: worker-1
expiresAt: 2030-03-17T17:46:39Z
"""


@pytest.mark.parametrize(
    ("text", "key"),
    [
        pytest.param(spec(expiresAt="2030-03-17T17:46:39Z"), "web", id="JSON"),
        pytest.param(YAML, "web", id="YAML"),
        pytest.param(items(SHORT), "worker-1", id="list, short names"),
        pytest.param(items(LONG), "worker-1", id="list, long names"),
    ],
)
def test_all_forms_say_the_same(text: str, key: str) -> None:
    read_ = one(text, key)
    assert read_.node == "worker-1"
    assert read_.owners == (PodName("shop", "web-0"),)
    assert read_.resources == {"cpu": 2000, "memory": 4 * 2**30, "pods": 1}
    assert read_.slots == 1
    assert read_.starts_at is None
    assert read_.expires_at == 1899999999
    assert read_.policy is Policy.PREFER


def test_a_list_may_hold_many_pods_and_each_is_told_apart() -> None:
    entries = read(items(item(), item(pod="web-1"), item(namespace="other")), "worker-1")
    assert [str(r.ref) for r in entries.reservations] == [
        "shop/store/worker-1[shop/web-0]",
        "shop/store/worker-1[shop/web-1]",
        "shop/store/worker-1[other/web-0]",
    ]


def test_fields_that_old_managers_add_to_a_list_are_passed_over() -> None:
    assert one(items(item(comment="x", cpus={})), "worker-1").resources["cpu"] == 2000


def test_the_short_and_the_long_form_may_stand_in_one_list() -> None:
    assert len(read(items(LONG, item(pod="web-1")), "worker-1").reservations) == 2


@pytest.mark.parametrize("text", ["[]", "null", "~", "# nothing yet", "---"])
def test_nothing_written_is_nothing_wrong(text: str) -> None:
    assert read(text, "worker-1") == Entries()


def test_everything_that_a_spec_can_say_is_read() -> None:
    full = one(
        spec(
            owners=[{"pod": {"name": "web-0"}}, {"pod": {"name": "db.0", "namespace": "data"}}],
            resources={
                "cpu": 0.5,
                "memory": "1.5Gi",
                "ephemeral-storage": 10,
                "hugepages-2Mi": "4Mi",
                "nvidia.com/gpu": "1",
                "pods": "3",
            },
            slots=2,
            startsAt="2029-12-31T23:00:00-01:00",
            policy="Require",
            preemptible=True,
            priority=500,
            reusable=False,
        )
    )
    assert full.owners == (PodName("data", "db.0"), PodName("shop", "web-0"))
    assert full.resources == {
        "cpu": 500,
        "memory": 3 * 2**29,
        "ephemeral-storage": 10,
        "hugepages-2Mi": 4 * 2**20,
        "nvidia.com/gpu": 1,
        "pods": 3,
    }
    assert full.slots == 2
    assert full.starts_at == 1893456000
    assert full.policy is Policy.REQUIRE
    assert full.yields_above == 500


def test_a_reservation_yields_to_priority_only_if_it_says_so() -> None:
    assert one(spec()).yields_above is None
    assert one(spec(preemptible=False)).identity == one(spec()).identity
    assert one(spec(preemptible=True)).yields_above == 0
    assert one(spec(preemptible=True, priority=-7)).yields_above == -7


def test_reservations_of_earlier_versions_keep_their_identity() -> None:
    """A claim names it: if it changed with an upgrade, claimed entries would hold again."""
    text = json.dumps(
        {"owners": [{"pod": {"name": "a"}}], "resources": {"cpu": 1}, "node": "n", "ttl": 0}
    )
    assert one(text).digest == "b0b5c5f4faafa1d6"


# When it expires.


@pytest.mark.parametrize(
    ("changes", "expires_at", "unstamped"),
    [
        pytest.param({}, SEEN, False, id="a moment"),
        pytest.param({"ttl": "5m"}, SEEN, False, id="a moment wins over a ttl"),
        pytest.param({"expiresAt": None}, SEEN + 86400, True, id="nothing said: a day"),
        pytest.param({"expiresAt": None, "ttl": "90s"}, SEEN + 90, True, id="seconds"),
        pytest.param({"expiresAt": None, "ttl": "1h30m"}, SEEN + 5400, True, id="hours, minutes"),
        pytest.param({"expiresAt": None, "ttl": "1.5h"}, SEEN + 5400, True, id="a fraction"),
        pytest.param({"expiresAt": None, "ttl": "1500ms"}, SEEN + 1, True, id="milliseconds"),
        pytest.param({"expiresAt": None, "ttl": "0"}, None, False, id="never"),
        pytest.param({"expiresAt": None, "ttl": 0}, None, False, id="never, as a number"),
    ],
)
def test_a_spec_expires_when_it_says(
    changes: dict[str, object], expires_at: float | None, *, unstamped: bool
) -> None:
    entries = read(spec(**changes))
    assert [r.expires_at for r in entries.reservations] == [expires_at]
    assert entries.unstamped == unstamped


@pytest.mark.parametrize(
    ("expiry", "at"),
    [
        (1899999999, 1899999999),
        (0, 0),
        ("2030-03-17T17:46:39Z", 1899999999),
        ("2030-03-17T18:46:39+01:00", 1899999999),
        ("2030-03-17T17:46:39.5Z", 1899999999.5),
    ],
)
def test_an_item_expires_at_unix_seconds_or_an_rfc_3339_time(expiry: object, at: float) -> None:
    assert one(items(item(expire=expiry)), "worker-1").expires_at == at


@pytest.mark.parametrize(
    "expiry",
    [
        1899999999000,
        -1,
        1.5,
        True,
        "",
        "soon",
        "1899999999",
        "2030-03-17",
        "2030-03-17T17:46:39",
        "2030-13-17T17:46:39Z",
        "2030-03-17T25:00:00Z",
        [],
        {},
        10**400,
    ],
    ids=str,
)
def test_what_is_no_moment_is_refused(expiry: object) -> None:
    error = refusal(items(item(expire=expiry)), "worker-1")
    assert error.path in {"[0].expire", "[0]"}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"expiresAt": "tomorrow"}, "expiresAt"),
        ({"expiresAt": "2030-01-31T10:00:00"}, "expiresAt"),
        ({"expiresAt": 1899999999}, "expiresAt"),
        ({"startsAt": "now"}, "startsAt"),
        ({"startsAt": "2031-01-01T00:00:00Z"}, "startsAt"),
        ({"startsAt": SPEC["expiresAt"]}, "startsAt"),
        *(
            ({"expiresAt": None, "ttl": ttl}, "ttl")
            for ttl in ("1d", "-5m", "5", 5, "", "h", "1h 5m", "forever", "1e3s", "∞")
        ),
    ],
    ids=str,
)
def test_what_is_no_moment_or_duration_in_a_spec_is_refused(
    changes: dict[str, object], path: str
) -> None:
    assert refusal(spec(**changes)).path == path


# What is written wrong.


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
        pytest.param("? [a]\n: b", "not a text", id="a list for a name"),
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
    """Read a value, which must not keep all others waiting."""
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
    assert "100000 items are too many for one node" in str(problem)


def test_a_name_that_stands_twice_among_very_many_is_found_in_no_time() -> None:
    names = "".join(f'"k{number}":0,' for number in range(10_000))
    assert quickly("{" + names + '"z":0,"z":0}').problems


def test_a_long_name_of_a_resource_is_not_quoted_at_length() -> None:
    assert len(str(refusal(spec(resources={"x" * 100_000: "1"})))) < 500


# What a spec gets wrong, field by field.

WRONG = {
    "text": "nonsense",
    "number": 7,
    "fraction": 1.5,
    "truth": True,
    "nothing": None,
    "list": ["x"],
    "object": {"x": "y"},
}
WRONG_TYPES: dict[str, set[str]] = {
    "owners": {"text", "number", "fraction", "truth", "nothing", "list", "object"},
    "resources": {"text", "number", "fraction", "truth", "nothing", "list", "object"},
    "node": {"number", "fraction", "truth", "nothing", "list", "object"},
    "slots": {"text", "fraction", "truth", "nothing", "list", "object"},
    "startsAt": {"text", "number", "fraction", "truth", "list", "object"},
    "expiresAt": {"text", "number", "fraction", "truth", "list", "object"},
    "ttl": {"fraction", "truth", "list", "object"},
    "policy": {"text", "number", "fraction", "truth", "nothing", "list", "object"},
    "preemptible": {"text", "number", "fraction", "nothing", "list", "object"},
    "priority": {"text", "fraction", "truth", "list", "object"},
    "reusable": {"text", "number", "fraction", "nothing", "list", "object"},
    "placement": {"text", "number", "fraction", "truth", "list", "object"},
    "surprise": {"text", "number", "fraction", "truth", "nothing", "list", "object"},
}


@pytest.mark.parametrize(
    ("field", "kind"),
    [(field, kind) for field, kinds in WRONG_TYPES.items() for kind in sorted(kinds)],
)
def test_a_spec_with_a_value_of_the_wrong_type_is_refused(field: str, kind: str) -> None:
    error = refusal(json.dumps(SPEC | {field: WRONG[kind]}))
    assert field in error.path or field in error.problem


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        pytest.param({"owners": None}, "", id="no owners"),
        pytest.param({"owners": []}, "owners", id="empty owners"),
        pytest.param({"owners": [{}]}, "owners[0]", id="an owner that is nobody"),
        pytest.param({"owners": [{"pod": {}}]}, "owners[0].pod", id="an owner without a name"),
        pytest.param({"owners": [{"pod": {"name": ""}}]}, "owners[0].pod.name", id="empty name"),
        pytest.param({"owners": [{"pod": {"name": "Web"}}]}, "owners[0].pod.name", id="upper case"),
        pytest.param(
            {"owners": [{"pod": {"name": "web"}}, {"pod": {"name": "a", "namespace": "a.b"}}]},
            "owners[1].pod.namespace",
            id="a namespace with a dot",
        ),
        pytest.param(
            {"owners": [{"pod": {"name": "web", "uid": "x"}}]}, "owners[0].pod", id="unknown field"
        ),
        pytest.param(
            {"owners": [{"controller": {"name": "web"}}]}, "owners[0].controller", id="controller"
        ),
        pytest.param({"owners": [{"selector": {}}]}, "owners[0].selector", id="selector"),
        pytest.param({"node": "Worker"}, "node", id="no valid node"),
        pytest.param({"node": "a" * 254}, "node", id="a long node"),
        pytest.param({"placement": {}}, "placement", id="placement"),
        pytest.param({"resources": None}, "", id="no resources"),
        pytest.param({"resources": {}}, "resources", id="empty resources"),
        pytest.param({"resources": {"cpu": "0"}}, "resources", id="nothing held"),
        pytest.param({"resources": {"cpu": "-1"}}, "resources.cpu", id="less than nothing"),
        pytest.param({"resources": {"cpu": -1}}, "resources.cpu", id="a negative number"),
        pytest.param({"resources": {"cpu": ""}}, "resources.cpu", id="an empty quantity"),
        pytest.param({"resources": {"cpu": "two"}}, "resources.cpu", id="a word"),
        pytest.param({"resources": {"memory": "1e17"}}, "resources.memory", id="more than 2^53"),
        pytest.param({"resources": {"memory": "9Ei"}}, "resources.memory", id="absurd"),
        pytest.param({"resources": {"memory": 1e300}}, "resources.memory", id="absurd number"),
        pytest.param(
            {"resources": {"memory": "8Pi"}, "slots": 2}, "resources.memory", id="too many slots"
        ),
        pytest.param(
            {"resources": {"cpu": "90071992548m"}, "slots": 100_000},
            "resources.cpu",
            id="millicores of all slots",
        ),
        pytest.param(
            {"resources": {"cpu": "1", "example.com/x": 2**53, "pods": 1}, "slots": 2},
            "resources.example.com/x",
            id="devices of all slots",
        ),
        pytest.param({"resources": {"gpu": "1"}}, "resources.gpu", id="no such resource"),
        pytest.param({"resources": {"storage": "1"}}, "resources.storage", id="not a node's"),
        pytest.param({"resources": {"nvidia.com/": "1"}}, "resources.nvidia.com/", id="no name"),
        pytest.param({"resources": {"/gpu": "1"}}, "resources./gpu", id="no domain"),
        pytest.param({"resources": {"a/b/c": "1"}}, "resources.a/b/c", id="two slashes"),
        pytest.param({"slots": 0}, "slots", id="no slots"),
        pytest.param({"slots": -1}, "slots", id="negative slots"),
        pytest.param({"slots": 100_001}, "slots", id="absurd slots"),
        pytest.param({"policy": "prefer"}, "policy", id="no such policy"),
        pytest.param({"priority": 5}, "priority", id="a priority that means nothing"),
        pytest.param({"preemptible": True, "priority": 10**9 + 1}, "priority", id="the system's"),
        pytest.param({"preemptible": True, "priority": -(2**31) - 1}, "priority", id="too low"),
        pytest.param({"preemptible": True, "priority": 10**90}, "priority", id="no priority"),
    ],
)
def test_a_spec_that_cannot_be_enforced_is_refused_at_its_field(
    changes: dict[str, object], path: str
) -> None:
    assert refusal(spec(**changes)).path == path


@pytest.mark.parametrize(
    "key", ["Web", "web_0", "-web", "web-", "web..0", ".web", "a" * 254, "WORKER_1"]
)
@pytest.mark.parametrize("text", [spec(), items(SHORT)], ids=["spec", "list"])
def test_a_key_that_is_no_valid_name_is_refused(key: str, text: str) -> None:
    error = refusal(text, key)
    assert "lower case" in error.remedy


def test_a_refused_spec_says_which_fields_there_are() -> None:
    remedy = refusal(spec(cpu="2")).remedy
    for field in ("owners", "resources", "slots", "node", "startsAt", "expiresAt", "ttl", "policy"):
        assert field in remedy


# What an item of a list gets wrong; all others are kept.

ITEM_WRONG: dict[str, set[str]] = {
    "pod": {"number", "fraction", "truth", "nothing", "list", "object"},
    "namespace": {"number", "fraction", "truth", "nothing", "list", "object"},
    "cpu": {"text", "fraction", "truth", "nothing", "list", "object"},
    "mem": {"text", "fraction", "truth", "nothing", "list", "object"},
    "expire": {"text", "fraction", "truth", "nothing", "list", "object"},
}
NAMES = {
    "pod": "reservingPod",
    "namespace": "reservingPodNamespace",
    "cpu": "cpuMilli",
    "mem": "memMilli",
    "expire": "expireAt",
}


@pytest.mark.parametrize(
    ("field", "kind"),
    [(field, kind) for field, kinds in ITEM_WRONG.items() for kind in sorted(kinds)],
)
def test_an_item_with_a_value_of_the_wrong_type_is_refused_alone(field: str, kind: str) -> None:
    for form, name in ((SHORT, field), (LONG, NAMES[field])):
        if form is LONG and (field, kind) == ("pod", "nothing"):
            continue  # Without that name it is the short form.
        written = [item(pod="before"), form | {name: WRONG[kind]}, item(pod="after")]
        entries = read(items(*written), "worker-1")
        assert [r.ref.item for r in entries.reservations] == ["shop/before", "shop/after"]
        (problem,) = entries.problems
        assert presentable(problem).path == f"[1].{name}"


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        pytest.param(None, "[1]", id="nothing"),
        pytest.param("web-0", "[1]", id="a word"),
        pytest.param([SHORT], "[1]", id="a list"),
        pytest.param({}, "[1].pod", id="empty"),
        pytest.param(item(pod=None), "[1].pod", id="no pod"),
        pytest.param(item(pod=""), "[1].pod", id="an empty name"),
        pytest.param(item(pod="Web"), "[1].pod", id="upper case"),
        pytest.param(item(namespace=None), "[1].namespace", id="no namespace"),
        pytest.param(item(namespace="a.b"), "[1].namespace", id="a namespace with a dot"),
        pytest.param(item(cpu=None), "[1].cpu", id="no cpu"),
        pytest.param(item(cpu=-1), "[1].cpu", id="negative cpu"),
        pytest.param(item(cpu="2000m"), "[1].cpu", id="a quantity"),
        pytest.param(item(mem=-1), "[1].mem", id="negative memory"),
        pytest.param(item(mem=2**53 + 1), "[1].mem", id="more than any node has"),
        pytest.param(item(mem=10**400), "[1]", id="absurd memory"),
        pytest.param(item(cpu=0, mem=0), "[1].cpu", id="nothing held"),
        pytest.param(item(expire=None), "[1].expire", id="no expiry"),
        pytest.param(item(pod="before"), "[1]", id="the same pod twice"),
    ],
)
def test_a_broken_item_is_refused_alone_at_its_field(broken: object, path: str) -> None:
    entries = read(items(item(pod="before"), broken, item(pod="after")), "worker-1")
    assert [r.ref.item for r in entries.reservations] == ["shop/before", "shop/after"]
    (problem,) = entries.problems
    assert presentable(problem).path == path


def test_an_item_with_a_name_that_stands_twice_is_refused_alone() -> None:
    twice = '{"pod": "a", "pod": "b", "namespace": "shop", "cpu": 1, "mem": 1, "expire": 1}'
    text = f"[{json.dumps(item(pod='before'))}, {twice}, {json.dumps(item(pod='after'))}]"
    entries = read(text, "worker-1")
    assert [r.ref.item for r in entries.reservations] == ["shop/before", "shop/after"]
    assert len(entries.problems) == 1


def test_one_of_cpu_and_memory_is_enough_to_hold() -> None:
    assert one(items(item(cpu=0)), "worker-1").resources == {"memory": 4 * 2**30, "pods": 1}
    assert one(items(item(mem=0)), "worker-1").resources == {"cpu": 2000, "pods": 1}


# What tells reservations apart.


def test_the_same_reservation_written_differently_is_the_same() -> None:
    short, long = one(items(SHORT), "worker-1"), one(items(LONG), "worker-1")
    assert short.identity == long.identity
    moment = spec(expiresAt="2030-03-17T18:46:40+01:00")
    assert one(spec()).identity == one(moment).identity == one(spec(slots=1)).identity
    backwards = json.dumps(dict(reversed(SPEC.items())), indent=3)
    assert one(backwards).identity == one(spec()).identity


@pytest.mark.parametrize(
    "changes",
    [
        {"node": "worker-2"},
        {"slots": 2},
        {"resources": {"cpu": "3", "memory": "4Gi"}},
        {"owners": [{"pod": {"name": "web-1"}}]},
        {"expiresAt": "2030-03-17T17:46:41Z"},
        {"startsAt": "2029-01-01T00:00:00Z"},
        {"policy": "Require"},
        {"preemptible": True},
    ],
    ids=str,
)
def test_another_reservation_at_the_same_place_is_another_one(changes: dict[str, object]) -> None:
    assert one(spec()).identity != one(spec(**changes)).identity
    assert one(spec()).ref == one(spec(**changes)).ref


def test_the_same_words_at_another_place_are_another_reservation() -> None:
    assert one(spec(), "web").identity != one(spec(), "api").identity

"""How flaws grow from traffic, schemas and orders, and what is expected of each."""

import pytest

from conformance.faults.kill.flaw import FAMILIES, Expectation, Flaw
from conformance.faults.kill.generation import FlawGenerator, visitors
from conformance.faults.kill.orders import Order, Orders, Rule, Sequence, read_orders
from conformance.faults.kill.plan import spread
from conformance.faults.kill.setups import SETUPS
from conformance.faults.kill.traffic import CaseTraffic, Traffic

META = {"version": 3, "agents": [{"name": "a", "version": "1.0.0", "secret": "***"}]}
STOP = {"stopReason": "end_turn"}
ORDERS = Orders(
    masks=("***",),
    exact=("sse turn_stop stopReason",),
    cursors=("GET /meta 200 version",),
    sequences=(Sequence(places="sse *", paths=("n",)),),
    streams={"sse": Order(first=("turn_start",), last=("turn_stop",), once=("turn_start",))},
    rules=(
        Rule(flaws="drop GET /meta 200 agents.each.name", expect=Expectation.FREE, why="only to see a rule decide"),
        Rule(flaws="drop nowhere *", expect=Expectation.FREE, why="only to see a rule that is idle"),
    ),
)


def record(case: str, binds: bool = True) -> CaseTraffic:
    found = CaseTraffic(case, binds)
    found.messages += [("GET /meta 200", META), ("sse turn_start", {}), ("sse turn_stop", STOP)]
    found.pairs.add(("sse", "turn_start", "turn_stop"))
    found.answers |= {("GET /meta 200", False), ("GET /gone 404", False), ("POST /turns 200 stream", True)}
    found.held(ORDERS.walk, "meta", META)
    found.held(ORDERS.walk, "agent", META["agents"][0])  # type: ignore[index]
    found.held(ORDERS.walk, "event.turn_stop", STOP)
    return found


@pytest.fixture
def traffic() -> Traffic:
    traffic = Traffic(ORDERS.walk)
    traffic.add(record("one"))
    return traffic


@pytest.fixture
def generated(traffic: Traffic) -> dict[str, Flaw]:
    return {flaw.name: flaw for flaw in FlawGenerator("aap", traffic, ORDERS).flaws()}


def test_a_case_is_seen_holding_a_part_to_a_schema(traffic: Traffic) -> None:
    assert traffic.holds["GET /meta 200"] == {("", "meta"), ("agents.each", "agent")}
    assert traffic.judges["GET /meta 200"] == {"one"}


def test_what_only_a_should_holds_is_not_held() -> None:
    traffic = Traffic(ORDERS.walk)
    traffic.add(record("one", binds=False))
    assert traffic.holds == {}
    assert not any(flaw.expectation is Expectation.BREAKS and flaw.kind == "drop"
                   for flaw in FlawGenerator("aap", traffic, ORDERS).flaws())  # fmt: skip


@pytest.mark.parametrize(
    ("name", "expectation"),
    [
        ("drop GET /meta 200 version", "breaks"),
        ("null GET /meta 200 agents", "breaks"),
        ("type GET /meta 200", "breaks"),
        ("type GET /meta 200 agents.each.name", "breaks"),
        ("enum sse turn_stop stopReason", "breaks"),
        ("alter sse turn_stop stopReason", "breaks"),
        ("extra GET /meta 200 agents.each", "tolerated"),
        ("drop GET /meta 200 agents.each.secret", "free"),
        ("drop GET /meta 200 agents.each.name", "free"),
        ("unmask GET /meta 200 agents.each.secret", "breaks"),
        ("stale GET /meta 200 version", "breaks"),
        ("gap sse * n", "breaks"),
        ("lose sse turn_start", "breaks"),
        ("double sse turn_start", "breaks"),
        ("double sse turn_stop", "free"),
        ("swap sse turn_start turn_stop", "breaks"),
        ("late sse turn_start", "breaks"),
        ("cut sse turn_stop", "breaks"),
        ("status GET /meta 200 202", "breaks"),
        ("status GET /meta 200 500", "breaks"),
        ("status GET /gone 404 200", "breaks"),
        ("status GET /gone 404 418", "free"),
        ("mime POST /turns 200 stream", "breaks"),
        ("garble GET /meta 200", "breaks"),
        ("crlf sse", "tolerated"),
        ("blank sse", "breaks"),
    ],
)
def test_expectations(generated: dict[str, Flaw], name: str, expectation: str) -> None:
    assert generated[name].expectation == expectation
    assert generated[name].why


@pytest.mark.parametrize("name", ["enum GET /meta 200 agents.each.secret", "alter GET /meta 200 agents.each.name"])
def test_what_says_nothing_does_not_grow(generated: dict[str, Flaw], name: str) -> None:
    assert name not in generated


def test_idle_rules_are_named(generated: dict[str, Flaw]) -> None:
    assert ORDERS.idle_rules(list(generated)) == ["drop nowhere *"]


def test_a_flaw_knows_the_cases_that_come_by(traffic: Traffic, generated: dict[str, Flaw]) -> None:
    quiet = CaseTraffic("two", True)
    quiet.messages.append(("sse turn_stop", STOP))
    traffic.add(quiet)
    assert visitors(traffic, generated["drop GET /meta 200 version"]) == {"one"}
    assert visitors(traffic, generated["lose sse turn_stop"]) == {"one", "two"}
    assert visitors(traffic, generated["swap sse turn_start turn_stop"]) == {"one"}
    assert visitors(traffic, generated["crlf sse"]) == {"one", "two"}
    assert visitors(traffic, generated["status GET /gone 404 200"]) == {"one"}
    assert visitors(traffic, generated["gap sse * n"]) == {"one", "two"}


def test_a_sample_is_always_the_same_and_of_every_kind(generated: dict[str, Flaw]) -> None:
    flaws = list(generated.values())
    sample = spread(flaws, 40)
    assert sample == spread(reversed(flaws), 40)
    assert len({flaw.name for flaw in sample}) == 40
    assert {flaw.kind for flaw in sample} == {flaw.kind for flaw in flaws if flaw.expectation is not Expectation.FREE}
    assert Expectation.FREE not in {flaw.expectation for flaw in sample}


def test_a_name_says_kind_place_and_path() -> None:
    flaw = Flaw("swap", "sse a b", "c")
    assert (flaw.name, flaw.family, flaw.channel, flaw.event) == ("swap sse a b c", "event", "sse", "a b")
    assert len({kind for kinds in FAMILIES.values() for kind in kinds}) == sum(map(len, FAMILIES.values()))


@pytest.mark.parametrize("dialect", SETUPS)
def test_the_orders_of_every_dialect_can_be_read(dialect: str) -> None:
    assert read_orders(dialect).walk.discriminators

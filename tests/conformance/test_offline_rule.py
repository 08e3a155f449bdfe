"""Rules and what becomes of them: evidence, violations, places, and examiners that stumble."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import orjson
import pytest

from conformance.kit import expect
from conformance.kit.expect import NotTestable
from conformance.kit.requirement import Catalogue
from conformance.kit.schemas import Schemas
from conformance.kit.suite import load_suite
from conformance.kit.verdict import Outcome, Report
from conformance.offline import judge
from conformance.offline.recording import Ending, Exchange, Piece, Recording
from conformance.offline.rule import Offline, collect, disagreements, rule
from conformance.offline.shape_rules import shaped

SUITE = load_suite("aap")
META = next(item for item in SUITE.catalogue.requirements if item.id == "AAP-META-01")


def exchange(path: str, body: Any, status: int = 200, method: str = "GET") -> Exchange:
    item = Exchange(1, "line 7", 7, 0.0, method, path, status=status, ending=Ending.WHOLE)
    item.pieces = [Piece("line 8", 8, 0.0, orjson.dumps(body))]
    return item


def put(monkeypatch: pytest.MonkeyPatch, check: Any) -> Report:
    """The report of one rule about AAP-META-01, put to an empty recording."""
    rules = (rule("AAP-META-01", needs="meta")(check),)
    monkeypatch.setattr(judge, "load_offline", lambda dialect: Offline(lambda recording: recording, rules, {}, ""))
    return judge.judge(SUITE, Recording("a.jsonl", []), [META])


def test_evidence_without_violation_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(recording: Recording) -> Iterator[str]:
        """It is there."""
        yield "line 3"

    report = put(monkeypatch, seen)
    assert report.findings[0].outcome is Outcome.PASSED
    assert (report.results[0].name, report.results[0].sentence) == ("test_offline_rule.seen", "It is there.")


def test_no_evidence_is_not_testable(monkeypatch: pytest.MonkeyPatch) -> None:
    def unseen(recording: Recording) -> Iterator[str]:
        yield from ()

    (result,) = put(monkeypatch, unseen).results
    assert (result.outcome, result.reason) == (Outcome.NOT_TESTABLE, "no evidence: the recording holds no meta")


def test_a_violation_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(recording: Recording) -> Iterator[str | Exchange]:
        yield "line 3"
        yield exchange("/meta", {"version": 2})
        expect.equal("the version", 3, 2)

    (result,) = put(monkeypatch, wrong).results
    assert (result.outcome, result.expected) == (Outcome.FAILED, "the version: 3")
    assert result.seen == "2 (at line 7, GET /meta)"
    assert '< {"version":2}' in result.transcript


def test_an_examiner_that_stumbles_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumbling(recording: Recording) -> Iterator[str]:
        yield "line 3"
        raise KeyError("version")

    (result,) = put(monkeypatch, stumbling).results
    assert result.outcome is Outcome.NOT_TESTABLE
    assert result.reason == "the examiner stumbled at line 3: KeyError: 'version'"


def test_a_rule_may_say_that_it_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    def shy(recording: Recording) -> Iterator[str]:
        yield "line 3"
        raise NotTestable("it is too dark")

    assert put(monkeypatch, shy).results[0].reason == "it is too dark"


def test_what_only_acting_decides_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    offline = Offline(lambda recording: recording, (), {"AAP-META-01": "nobody asked"}, "")
    monkeypatch.setattr(judge, "load_offline", lambda dialect: offline)
    (result,) = judge.judge(SUITE, Recording("a.jsonl", []), [META]).results
    assert result.reason == "only a live examination can decide it: nobody asked"


def _rules() -> ModuleType:
    module = ModuleType("some")

    def one(view: Any) -> Iterator[str]:
        """One."""
        yield ""

    made = rule("AAP-META-01", needs="x")(one)
    module.__dict__.update(first=made, table=(made,), other=7)
    return module


def test_rules_are_collected_from_names_and_tables() -> None:
    assert len(collect([_rules()])) == 2


def test_disagreements_are_found_both_ways() -> None:
    catalogue = Catalogue(dialect="x", title="X", requirements=(META,))
    rules = collect([_rules()])
    assert disagreements(catalogue, Offline(lambda recording: recording, rules[:1], {}, "")) == []
    twice = f"{rules[0].name}: two rules have this name"
    assert disagreements(catalogue, Offline(lambda recording: recording, rules, {}, "")) == [twice]
    assert disagreements(catalogue, Offline(lambda recording: recording, (), {"AAP-X-01": "?"}, "")) == [
        "AAP-META-01: neither a rule nor a reason",
        "AAP-X-01: the catalogue does not have it",
    ]
    assert disagreements(catalogue, Offline(lambda recording: recording, rules[:1], {"AAP-META-01": "?"}, "")) == [
        "AAP-META-01: has a rule, and a reason for having none"
    ]


@pytest.fixture
def schemas(tmp_path: Path) -> Schemas:
    (tmp_path / "thing.json").write_text('{"$id": "x:thing", "type": "object", "required": ["id"]}', encoding="utf-8")
    return Schemas(tmp_path)


TABLE = """
    POST /things       201     thing AAP-META-01
    GET  /things/{}    200     thing AAP-META-01,AAP-META-02
    GET  /things/fixed 200     -     AAP-META-02
"""


def test_a_table_makes_rules(schemas: Schemas) -> None:
    made, one, fixed = shaped(schemas, TABLE)
    assert [it.name for it in (made, one)] == ["shapes.post_things", "shapes.get_things_one"]
    assert fixed.sentence == "GET /things/fixed that succeeds is answered with 200."
    assert one.requirements == ("AAP-META-01", "AAP-META-02")
    assert made.sentence == "POST /things that succeeds is answered with 201 and a body that fits `thing`."


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (exchange("/things", {"id": 1}, 200, "POST"), "to be answered with 201"),
        (exchange("/things", {}, 201, "POST"), "to fit the schema `thing`"),
    ],
)
def test_a_wrong_shape_fails(schemas: Schemas, item: Exchange, words: str) -> None:
    view = SimpleNamespace(recording=Recording("a", [item]))
    with pytest.raises(expect.Failed, match=words):
        list(shaped(schemas, TABLE)[0].check(view))


def test_fixed_names_and_refusals_are_no_evidence(schemas: Schemas) -> None:
    view = SimpleNamespace(recording=Recording("a", [exchange("/things/fixed", 7), exchange("/things/1", 7, 404)]))
    assert list(shaped(schemas, TABLE)[1].check(view)) == []
    assert len(list(shaped(schemas, TABLE)[2].check(view))) == 1

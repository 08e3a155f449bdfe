"""A server that lacks optional parts of its protocol is told apart from one that has them wrong."""

from collections import Counter
from pathlib import Path

import pytest

from conformance.faults.kill.setups import setup_of
from conformance.faults.local_server import served
from conformance.kit.documents import DocumentError
from conformance.kit.missing_features import missing, unoffered
from conformance.kit.reports import writer
from conformance.kit.runner import Runner
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import Outcome, Report, Verdict
from tests.support.conformance.examination_facts import EXAMINED, KEY
from tests.support.conformance.examinations import SERVERS, suited
from tests.support.conformance.lacking_server import Lacking, probed


def smallest_section(dialect: str) -> str:
    """The section with the fewest requirements that belongs to no feature."""
    catalogue = load_suite(dialect).catalogue
    optional = {name for feature in catalogue.features.values() for name in feature.sections}
    counted = Counter(item.section for item in catalogue.requirements if item.section not in optional)
    return min(counted, key=lambda name: counted[name])


async def lacking(dialect: str, *sections: str, status: int = 404) -> Report:
    """The optional parts, and these sections beside them, before a server that has none of the routes of the parts."""
    suite, server = load_suite(dialect), SERVERS[dialect]()
    settings = suited(dialect, server)
    routes = tuple(route for routes in probed(dialect).values() for route in routes)
    async with served(Lacking(server, routes, status)) as url:
        target = Target(url, KEY, 5.0)
        absent = await missing(suite.catalogue, target)
        parts = unoffered(suite.catalogue, absent)
        wanted = [it for it in suite.catalogue.requirements if it.id in parts or it.section in sections]
        return await Runner(suite, target, settings, missing=absent).run(wanted)


@pytest.mark.parametrize("status", [404, 501])
@pytest.mark.parametrize("dialect", [name for name in EXAMINED if probed(name)])
async def test_what_is_not_there_is_not_offered(dialect: str, status: int) -> None:
    report = await lacking(dialect, smallest_section(dialect), status=status)
    assert report.of(Outcome.FAILED) == report.blocked == ()
    exempt, catalogue = report.of(Outcome.NOT_OFFERED), load_suite(dialect).catalogue
    names = unoffered(catalogue, dict.fromkeys(probed(dialect), "so"))
    applicable = {item.id for item in catalogue.requirements if not item.not_applicable}
    assert exempt and {item.requirement.id for item in exempt} == names.keys() & applicable
    assert all(f"is answered with {status}" in (item.not_offered or "") for item in exempt)
    assert report.of(Outcome.PASSED)
    assert report.verdict is not Verdict.FAILS


@pytest.mark.parametrize("dialect", EXAMINED)
async def test_a_server_that_has_everything_misses_nothing(dialect: str) -> None:
    async with served(SERVERS[dialect]()) as url:
        assert await missing(load_suite(dialect).catalogue, Target(url, KEY, 5.0)) == {}


async def test_a_server_that_is_silent_may_have_it() -> None:
    assert await missing(load_suite("cas").catalogue, Target("http://127.0.0.1:9", KEY, 0.5)) == {}


async def test_the_profile_says_what_a_server_does_without(tmp_path: Path) -> None:
    suite = load_suite("aap")
    path = tmp_path / "profile.yaml"
    path.write_text(suite.default_profile.read_text("utf-8") + "\nwithout: [tools]\n", encoding="utf-8")
    asked = [item for item in suite.catalogue.requirements if item.section in ("tools", "meta")]
    async with served(setup_of("aap").server()) as url:
        report = await Runner(suite, Target(url, KEY, 5.0), suite.read_profile(path)).run(asked)
    assert {item.requirement.section for item in report.of(Outcome.NOT_OFFERED)} == {"tools"}
    assert not any(result.name.startswith("tools.") for result in report.results)
    for kind in ("html", "json", "markdown", "junit"):
        assert "the profile says that the server does without tools" in writer(kind)(report), kind


def test_a_feature_that_nobody_knows_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text("prompts: {}\nwithout: [fiels]\n", encoding="utf-8")
    with pytest.raises(DocumentError, match=r"profile.yaml:2: without: there is no feature 'fiels'.*files"):
        load_suite("zenflux").read_profile(path)


def test_features_have_members() -> None:
    catalogue = load_suite("aap").catalogue
    data = catalogue.model_dump()
    data["features"]["tools"]["sections"] = ["toools"]
    with pytest.raises(ValueError, match="the feature 'tools' names toools"):
        type(catalogue).model_validate(data)
    assert unoffered(catalogue, {"tools": "so"}).keys() == {
        item.id for item in catalogue.requirements if item.section == "tools"
    }

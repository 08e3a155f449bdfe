"""A server without the optional parts of its protocol fails nothing: its profile says so, or its routes show it."""

from typing import Any

import pytest

from conformance.faults.local_server import served
from conformance.kit.missing_features import missing
from conformance.kit.runner import Runner
from conformance.kit.suite import Target, dialects, load_suite
from conformance.kit.verdict import Outcome
from tests.support.conformance.examinations import KEY, PATIENT, SERVERS, suited
from tests.support.conformance.lacking_server import Lacking, probed
from tests.support.dialect_parts import each


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "probed"])
@pytest.mark.parametrize("dialect", each("examination", of=dialects()))
async def test_what_a_server_may_do_without_is_no_failure(dialect: str, is_told: bool) -> None:
    suite, server = load_suite(dialect), SERVERS[dialect]()
    features = suite.catalogue.features
    settings: Any = suited(dialect, server)
    prompts = settings.prompts
    unknown = {name for feature in features.values() for name in feature.situations if hasattr(prompts, name)}
    settings = settings.model_copy(
        update={
            "prompts": prompts.model_copy(update=dict.fromkeys(unknown, prompts.text)),  # the agent just answers
            "without": tuple(features) if is_told else (),
        }
    )
    routes = tuple(route for routes in probed(dialect).values() for route in routes)
    async with served(Lacking(server, routes)) as url:
        target = Target(url, KEY, PATIENT, allow_destructive=True, is_disposable=True)
        absent = {} if is_told else await missing(suite.catalogue, target)
        assert is_told or absent.keys() >= probed(dialect).keys()
        report = await Runner(suite, target, settings, missing=absent).run(suite.catalogue.requirements)
    assert [(item.requirement.id, item.grave) for item in (*report.of(Outcome.FAILED), *report.blocked)] == []
    assert report.of(Outcome.PASSED)

"""The OpenAPI document has every route that is served and nothing else, with the bodies that handlers read."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from gateway.api_documents import OPENAPI, RouteGroup
from gateway.app import Gateway
from gateway.composition import load_components
from gateway.config import load_config
from gateway.http import answers_of
from tests.support.api_documents import broken_references
from tests.support.dialect_tables import ALL_DIALECTS, DIALECTS
from tests.support.gateway_server import serving, write_settings
from tests.support.open_schemas import open_places

NOT_IMPLEMENTED = 501
OUR_OWN = ("GET", "POST", "PUT", "PATCH", "DELETE")


def made_gateway(folder: Path, **settings: Any) -> Gateway:
    """A gateway that serves nothing yet."""
    write_settings(folder, **{"dialects": ALL_DIALECTS, **settings})
    return Gateway(load_components(load_config(folder / "config.yaml")))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Gateway:
    return made_gateway(tmp_path_factory.mktemp("openapi"))


@pytest.fixture(scope="module")
def document(gateway: Gateway) -> dict[str, Any]:
    return gateway.api_documents.make(OPENAPI)


def served_places(gateway: Gateway) -> Iterator[tuple[str, str]]:
    for route in gateway.web.router.routes():
        if route.resource is not None and not _is_absent(route.handler):
            yield from ((method, route.resource.canonical) for method in OUR_OWN if route.method in (method, "*"))


def _is_absent(handler: object) -> bool:
    found = answers_of(handler)
    return found is not None and found.is_absent


def described_places(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}


def test_every_route_that_is_served_is_described_and_nothing_else(gateway: Gateway, document: dict[str, Any]) -> None:
    assert described_places(document) == set(served_places(gateway))


async def test_what_is_left_out_is_not_implemented(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects=ALL_DIALECTS) as served:
        absent = [(route.method, route.resource.canonical) for route in served.gateway.web.router.routes()
                  if route.resource is not None and _is_absent(route.handler)]
        assert absent
        for method, path in absent:
            url = served.url(re.sub(r"(?<=[a-z])\{rest\}", "/some", path).replace("{", "").replace("}", ""))
            async with served.http.request("GET" if method == "*" else method, url) as response:
                assert response.status == NOT_IMPLEMENTED, path


def test_every_handler_declares_what_it_answers(gateway: Gateway) -> None:
    undeclared = [f"{route.method} {route.path}" for group in gateway.route_groups() for route in group.routes
                  if answers_of(route.handler) is None and route.method != "OPTIONS"]
    assert undeclared == []


def test_names_are_unique_and_references_lead_somewhere(document: dict[str, Any]) -> None:
    ids = [one["operationId"] for methods in document["paths"].values() for one in methods.values()]
    assert len(set(ids)) == len(ids)
    assert broken_references(document) == []


def handlers_that_read(group: RouteGroup) -> Iterator[tuple[str, str, str]]:
    """Where a handler is, the model that it reads itself, and the one that it declares."""
    for route in group.routes:
        answers, function = answers_of(route.handler), inspect.unwrap(route.handler)
        source = inspect.getsource(function)
        [tree] = ast.parse(dedent(source)).body
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "read_json":
                model = ast.unparse(call.args[1]).removeprefix("wire.")
                declared = getattr(answers.reads, "__name__", "nothing") if answers is not None else "nothing"
                yield f"{route.method} {route.path}", model, declared


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_handler_declares_the_model_that_it_reads(gateway: Gateway, dialect: str) -> None:
    [group] = [group for group in gateway.route_groups() if group.name == dialect]
    read = [one for one in handlers_that_read(group) if not one[1].startswith("self.")]
    wrong = [f"{where} reads {model}, and declares {declared}" for where, model, declared in read if model != declared]
    assert wrong == []


# -- what the settings change -----------------------------------------------------------------------------------------

def test_a_mount_of_the_settings_is_the_mount_of_the_document(tmp_path: Path) -> None:
    found = made_gateway(tmp_path, dialects={"aap": {"mount": "/elsewhere"}}).api_documents.make(OPENAPI, "aap")
    assert found["paths"]
    assert all(path.startswith("/elsewhere/") for path in found["paths"])


def test_an_override_of_a_table_changes_the_document(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("dialect: aap\nobjects: {created: {sessionId: $drop, id: $session_id}}\n")
    found = made_gateway(tmp_path, dialects={"aap": {}}, mappings={"aap": "mine.yaml"}).api_documents.make(OPENAPI)
    assert set(found["components"]["schemas"]["aap.created"]["properties"]) == {"id"}


def test_keys_are_demanded_where_the_settings_demand_them(tmp_path: Path, document: dict[str, Any]) -> None:
    assert "securitySchemes" not in document["components"]
    found = made_gateway(tmp_path, dialects={"aap": {}}, auth="keys").api_documents.make(OPENAPI)
    assert found["components"]["securitySchemes"] == {"key": {"type": "http", "scheme": "bearer"}}
    assert found["paths"]["/aap/sessions"]["get"]["security"] == [{"key": []}]
    assert found["paths"]["/aap/meta"]["get"]["security"] == []


# -- how much the document says ---------------------------------------------------------------------------------------

MOST_OPEN = 125
"""At how many places any value is allowed; lower the number when the document says more."""


def test_few_places_allow_any_value(document: dict[str, Any]) -> None:
    places = open_places(document)
    counted = {owner: len(found) for owner, found in places.items()}
    told = "\n".join(place for found in places.values() for place in found)
    assert sum(counted.values()) <= MOST_OPEN, (
        f"{counted}: give these names a type in `name_types` of the dialect, or in the struct of the body\n{told}")


def test_a_place_that_allows_any_value_is_found() -> None:
    schema = {"type": "object", "properties": {
        "a": {"title": "A"}, "b": {"items": {}}, "c": {"anyOf": [{}, {"const": 1}]}, "d": {"type": "string"},
        "e": {"additionalProperties": False}}}
    operation = {"tags": ["x"], "parameters": [{"name": "q", "schema": {}}],
                 "responses": {"200": {"content": {"application/json": {"schema": {"type": "array", "items": True}}}}}}
    found = open_places({"components": {"schemas": {"x.y": schema}}, "paths": {"/p": {"get": operation}}})
    assert found == {"x": ["x.y.a", "x.y.b.*", "x.y.c|0", "get /p ?q"]}

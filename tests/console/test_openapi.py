"""The OpenAPI document describes every operation that is served, and what is answered fits the description."""

import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from gateway.console.operations import API
from tests.support.api_documents import broken_references
from tests.support.console_client import ConsoleClient

DOCS = Path(__file__).parents[2] / "docs" / "console.md"


def schema_of(document: dict[str, Any], method: str, path: str, status: str = "200") -> dict[str, Any]:
    answer = document["paths"][f"{API}{path}"][method]["responses"][status]
    if "$ref" in answer:
        answer = document["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    return {**answer["content"]["application/json"]["schema"], "components": document["components"]}


async def test_every_route_is_described_and_every_reference_leads_somewhere(console: ConsoleClient) -> None:
    document = await console.get("/openapi.json")
    assert document["openapi"].startswith("3.1")
    served = {(route.method, route.resource.canonical) for route in console.served.gateway.web.router.routes()
              if route.resource is not None and route.resource.canonical.startswith(API) and route.method != "HEAD"}
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == served
    ids = [one["operationId"] for methods in document["paths"].values() for one in methods.values()]
    assert len(set(ids)) == len(ids)
    assert not broken_references(document)


async def test_the_documentation_has_every_operation(console: ConsoleClient) -> None:
    rows = re.findall(r"^\| `(\w+ /\S*)` \| (.*) \| (\w*) ?\|$", DOCS.read_text("utf-8"), re.MULTILINE)
    who = {(True, False): "anybody", (False, True): "admins", (False, False): ""}
    served = [(f"{one.method} {one.path}", one.summary.rstrip("."), who[one.is_public, one.for_admins])
              for one in console.served.gateway.console.operations]
    assert rows == served


@pytest.mark.parametrize(("path", "asked"), [
    ("/hello", "/hello"), ("/server", "/server"), ("/sessions", "/sessions"), ("/sessions/active", "/sessions/active"),
    ("/sessions/{id}", "/sessions/ID"), ("/sessions/{id}/records", "/sessions/ID/records"),
    ("/sessions/{id}/frames", "/sessions/ID/frames?dialect=aap"), ("/losses", "/losses"), ("/figures", "/figures"),
    ("/tables/{dialect}", "/tables/aap"), ("/warnings", "/warnings"),
])
async def test_an_answer_fits_its_description(console: ConsoleClient, path: str, asked: str) -> None:
    document = await console.get("/openapi.json")
    session = await console.create(title="described")
    await console.talk(session, "/ask /think hello")
    answer = await console.get(asked.replace("ID", session))
    validator = jsonschema_rs.Draft202012Validator(schema_of(document, "get", path))
    assert [error.message for error in validator.iter_errors(answer)] == []


async def test_an_error_fits_its_description(console: ConsoleClient) -> None:
    document = await console.get("/openapi.json")
    validator = jsonschema_rs.Draft202012Validator(schema_of(document, "get", "/sessions", "400"))
    assert validator.is_valid({"error": await console.error("GET", "/sessions?limit=x", 400)})
    assert not validator.is_valid({"error": "text"})

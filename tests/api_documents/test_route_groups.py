"""A group of routes: which operations it has, what they are called, and what their errors are."""

from aiohttp import web

from gateway.api_documents import RouteGroup
from gateway.api_documents.schema_library import SchemaLibrary
from gateway.http import Answers, public
from tests.support.dialect_tables import table


@public
@Answers({"done": bool})
async def done(request: web.Request) -> web.Response:
    """Say that it is done.

    And more.
    """
    raise NotImplementedError


@Answers(is_absent=True)
async def absent(request: web.Request) -> web.Response:
    raise NotImplementedError


def test_an_operation_is_named_after_its_method_and_path() -> None:
    described = [web.get("/a/{id}/{path:.+}", done), web.get("/a/", done)]
    routes = [*described, web.post("/b", absent), web.options("/a/", done)]
    found = list(RouteGroup(name="it", routes=routes).operations())
    assert [(one.method, one.path, one.id) for one in found] == [
        ("get", "/a/{id}/{path}", "get_a_id_path"), ("get", "/a/", "get_a_slash")]
    assert (found[0].path_names, found[0].summary) == (["id", "path"], "Say that it is done.")
    assert found[0].policy.is_public


def test_errors_are_those_of_the_table_by_their_status() -> None:
    library = SchemaLibrary()
    group = RouteGroup(name="aap", routes=[], table=table("aap"))
    found = group.errors(library, library.wire(table("aap")))
    assert found[404] == {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    assert found[504]["properties"]["code"] == {"const": "timeout"}


def test_without_a_table_errors_are_those_of_the_server() -> None:
    library = SchemaLibrary()
    found = RouteGroup(name="server", routes=[]).errors(library, None)
    assert {"$ref": "#/components/schemas/ErrorBody"} == found[404] == found[503]

"""The documents are served to anybody, made when they are asked for, and made again after a reload."""

from pathlib import Path

from gateway.api_documents import documents
from gateway.composition import load_components
from gateway.config import load_config
from tests.support.gateway_server import Served, serving


async def fetch(served: Served, path: str) -> tuple[int, dict[str, object]]:
    async with served.http.get(served.url(path)) as response:
        return response.status, await response.json()


async def test_nobody_needs_a_key_and_a_foreign_host_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"aap": {}}, auth="keys") as served:
        for path, kind in ((documents.OPENAPI, "openapi"), (documents.ASYNCAPI, "asyncapi")):
            status, document = await fetch(served, path)
            assert (status, kind in document) == (200, True)
            async with served.http.get(served.url(path), headers={"Host": "evil.example"}) as response:
                assert response.status == 421


async def test_the_document_of_one_dialect_has_only_its_paths(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"aap": {}, "cas": {}}) as served:
        _, whole = await fetch(served, "/openapi.json")
        _, one = await fetch(served, "/openapi.json?dialect=aap")
        status, error = await fetch(served, "/openapi.json?dialect=ap")
    assert set(one["paths"]) == {path for path in whole["paths"] if path.startswith("/aap/")}
    assert (status, error["error"]["message"]) == (404, "no dialect 'ap' is served; did you mean 'aap'?")


async def test_a_document_is_made_once_and_again_after_a_reload(tmp_path: Path) -> None:
    made = list[str]()
    async with serving(tmp_path, dialects={"aap": {}}) as served:
        maker = documents.MAKERS[documents.OPENAPI]
        documents.MAKERS[documents.OPENAPI] = lambda *given: made.append("made") or maker(*given)
        try:
            await fetch(served, "/openapi.json")
            await fetch(served, "/openapi.json")
            assert made == ["made"]
            served.gateway.replace_components(load_components(load_config(tmp_path / "config.yaml")))
            await fetch(served, "/openapi.json")
            assert made == ["made", "made"]
        finally:
            documents.MAKERS[documents.OPENAPI] = maker

"""What a route of a table declares: what it reads, and what it answers with which status."""

from pathlib import Path
from typing import Any

import pytest

from adapters.plain.declarations import declared_answers
from gateway.http import Answers
from mappings.language import read_plain_table
from tests.support.plain_dialect import NAME, PlainFolder

TABLE = """
dialect: nova
spec: "1"
transport: {transport}
routes: {{ {routes} }}
inputs: {{ say: {{ command: send_message, wire: {{ text: $content }} }}, stop: {{ command: interrupt }} }}
objects:
  {{ talk: {{ id: $session_id }}, wish: {{ agent: $agent }}, place: {{ after: $after }}, beat: {{ type: beat }} }}
errors: {{ "*": {{ body: $message }} }}
"""


def declared(folder: Path, route: str, transport: str = "rest+sse") -> Answers:
    file = folder / "nova.yaml"
    file.write_text(TABLE.format(transport=transport, routes=route))
    table = read_plain_table(file)
    return declared_answers(table.routes[0], table)


@pytest.mark.parametrize(("route", "status", "answer", "has_body"), [
    ("POST /talks: { session: create, body: wish, object: talk }", 201, ("talk",), True),
    ("DELETE '/talks/{session}': { session: delete }", 204, None, False),
    ("GET '/talks/{session}': { session: get, object: talk, status: 203 }", 203, ("talk",), False),
    ("POST '/talks/{session}/stop': { input: stop }", 204, None, False),
    ("POST '/talks/{session}/lines': { input: say, object: talk }", 200, ("talk",), True),
])
def test_the_status_the_answer_and_the_body(
    tmp_path: Path, route: str, status: int, answer: object, has_body: bool,
) -> None:
    method, _, rest = route.partition(" ")
    path, _, action = rest.partition(": ")
    found = declared(tmp_path, f'"{method} {path.strip(chr(39))}": {action}')
    assert (found.status, found.answer, found.reads is not None) == (status, answer, has_body)


def test_a_socket_has_messages_frames_and_a_heartbeat(tmp_path: Path) -> None:
    route = '"GET /talks/{session}": { stream: session, input: say, ping: beat, query: place }'
    found = declared(tmp_path, route, "websocket")
    assert (found.frames, list(found.messages), found.stream_rows, found.query) == ("json", ["say"], ("beat",), "place")


async def test_the_documents_have_its_routes_bodies_and_frames(plain_folder: PlainFolder) -> None:
    async with plain_folder.serving() as client:
        async with client.http.get(client.served.url(f"/openapi.json?dialect={NAME}")) as response:
            document: dict[str, Any] = await response.json()
        async with client.http.get(client.served.url(f"/asyncapi.json?dialect={NAME}")) as response:
            streams: dict[str, Any] = await response.json()
        table = client.served.gateway.components.tables[NAME]
    routes = {f"{method.upper()} {path.removeprefix(f'/{NAME}')}" for path, methods in document["paths"].items()
              for method in methods}
    assert routes == set(table._draft.shape.routes)
    assert all(name.startswith(f"{NAME}.") for name in document["components"]["schemas"] if NAME in name)
    assert streams["channels"]

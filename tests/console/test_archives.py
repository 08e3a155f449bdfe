"""Sessions carried out and in, links for others, and cards in a response that can reach nothing."""

import zipfile
from io import BytesIO
from pathlib import Path

import aiohttp
import orjson
import pytest

from tests.support.console_client import ConsoleClient
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import serving

TALK = "/think /tool clock hello"
RAW = {"Content-Type": "application/octet-stream"}


async def exported(console: ConsoleClient, session: str, kind: str) -> bytes:
    async with console.asks("GET", f"/sessions/{session}/export?format={kind}") as answer:
        assert answer.status == 200
        assert f'filename="{session}.{kind}"' in answer.headers["Content-Disposition"]
        assert answer.headers["Content-Security-Policy"].startswith("sandbox")
        return await answer.read()


@pytest.mark.parametrize("kind", ["jsonl", "zip"])
async def test_a_session_that_is_exported_can_be_imported(console: ConsoleClient, kind: str) -> None:
    session = await console.create(title="Trip", options={"api_key": "very-secret"})
    records = await console.talk(session, TALK)
    content = await exported(console, session, kind)
    assert b"very-secret" not in content
    made = await console.call("POST", "/sessions/import", status=201, data=content, headers=RAW)
    assert (made["title"], made["session_id"] != session) == ("Trip", True)
    again = (await console.get(f"/sessions/{made['session_id']}/records"))["records"]
    assert [record["event"] for record in again[1:]] == [record["event"] for record in records[1:]]
    form = aiohttp.FormData()
    form.add_field("file", content, filename=f"session.{kind}")
    assert (await console.call("POST", "/sessions/import", status=201, data=form))["title"] == "Trip"


async def test_the_turn_that_runs_is_not_imported(console: ConsoleClient) -> None:
    session = await console.create()
    await console.talk(session, "hello")
    await console.talk(session, "/ask")
    content = await exported(console, session, "jsonl")
    made = await console.call("POST", "/sessions/import", status=201, data=content, headers=RAW)
    assert (made["turns"], made["status"]) == (1, "idle")


def zipped(**files: bytes) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


@pytest.mark.parametrize("content", [
    b"", b"\n\n", b"{}", b"not json", b'{"seq":1}', b"PK\x03\x04broken", zipped(a=b"x"), b"[" * 100_000, b"\xff\xfe\n",
    orjson.dumps({"seq": 1, "at": 1.0, "session_id": "s", "event": {"type": "turn.started", "command_id": "c"}}),
    orjson.dumps({"seq": 5, "at": 1.0, "session_id": "s", "event": {"type": "session.created", "agent": "demo"}}),
    orjson.dumps({"seq": 1, "at": 1.0, "session_id": "s", "event": {"type": "session.created", "agent": "nobody"}}),
])
async def test_what_is_no_session_is_refused(console: ConsoleClient, content: bytes) -> None:
    async with console.asks("POST", "/sessions/import", data=content, headers=RAW) as answer:
        assert answer.status in (400, 404), await answer.text()
        assert (await answer.json())["error"]["message"]
    assert (await console.get("/sessions"))["sessions"] == []
    await console.error("GET", "/sessions/sess_none/export", 404)


# -- links ------------------------------------------------------------------------------------------------------------

async def test_whoever_has_a_link_reads_the_conversation_and_nothing_else(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={name: {} for name in DIALECTS}, auth="keys") as served:
        ann, stranger = ConsoleClient(served, await served.gateway.keys.add("ann")), ConsoleClient(served)
        session = await ann.create(title="Trip", client_tools=[{"name": "private_tool"}])
        records = await ann.talk(session, TALK)
        link = await ann.call("POST", f"/sessions/{session}/shares", {"days": 1}, 201)
        assert link["url"] == served.url(f"/console?share={link['token']}")
        at = f"/shared/{link['token']}"
        shared = await stranger.get(at)
        assert (shared["session"]["title"], shared["dialects"]) == ("Trip", list(DIALECTS))
        shown = await stranger.get(f"{at}/records")
        assert [record["event"] for record in shown["records"][1:]] == [record["event"] for record in records[1:]]
        pages = [await stranger.call("GET", f"{at}/records", raw=True)]
        pages += [await stranger.call("GET", f"{at}/frames?dialect={name}", raw=True) for name in DIALECTS]
        for page in pages:
            assert b"private_tool" not in page and b'"ann"' not in page
        await stranger.error("GET", f"/sessions/{session}", 401)
        await ann.call("DELETE", f"/sessions/{session}/shares/{link['token']}", status=204)
        await stranger.error("GET", at, 404)


async def test_a_link_that_is_none_opens_nothing(console: ConsoleClient) -> None:
    session = await console.create()
    for path in ("/shared/x", "/shared/x/records", "/shared/x/frames?dialect=aap"):
        await console.error("GET", path, 404)
    for body in ({"days": 0}, {"days": 9999}, {"days": "x"}):
        await console.error("POST", f"/sessions/{session}/shares", 400, body)
    await console.error("DELETE", f"/sessions/{session}/shares/nothing", 404)


# -- cards ------------------------------------------------------------------------------------------------------------

async def test_a_card_is_shown_where_it_can_reach_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={name: {} for name in DIALECTS}, auth="keys") as served:
        ann, bob = [ConsoleClient(served, await served.gateway.keys.add(name)) for name in ("ann", "bob")]
        session = await ann.create()
        records = await ann.talk(session, "/ui")
        [seq] = [record["seq"] for record in records if record["name"] == "tool.returned"]
        link = await ann.call("POST", f"/sessions/{session}/cards/{seq}", {}, 201)
        async with served.http.get(served.url(link["url"])) as answer:
            assert (answer.status, answer.content_type) == (200, "text/html")
            policy = answer.headers["Content-Security-Policy"].split("; ")
            assert "A card from the demo agent" in await answer.text()
        assert policy[0] == "sandbox allow-scripts" and "default-src 'none'" in policy
        assert not [rule for rule in policy if "same-origin" in rule or "http" in rule or rule.startswith("connect")]
        for wrong in (1, seq + 1, 0, 99_999, "x", "-1"):
            await ann.error("POST", f"/sessions/{session}/cards/{wrong}", 404)
        await bob.error("POST", f"/sessions/{session}/cards/{seq}", 404)
        word = link["url"].rpartition("/")[2]
        async with served.http.get(served.url(f"/console/card/{word[:-4]}AAAA")) as answer:
            assert answer.status in (403, 404)
        async with served.http.get(served.url(f"/api/v1/cloud/file-links/{word}")) as answer:
            assert answer.status in (403, 404), "the link of a card opens no file"

"""Conversations over HTTP: made, listed, searched and read, and the same that other dialects see."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.zenflux.client import Client, talking


async def made(client: Client, title: str = "", user_id: str = "local") -> Any:
    return await client.call("POST", "/conversations", params={"user_id": user_id, "title": title})


async def test_a_conversation_from_beginning_to_end(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        new = await made(client, "Trip", "ann")
        assert set(new) >= {"id", "title", "user_id", "created_at", "updated_at"}
        assert (new["title"], new["user_id"]) == ("Trip", "ann")
        assert new["created_at"].endswith("Z")
        assert await client.call("GET", f"/conversations/{new['id']}") == new
        renamed = await client.call("PUT", f"/conversations/{new['id']}", params={"title": "Journey"})
        assert renamed["title"] == "Journey"
        assert await client.call("DELETE", f"/conversations/{new['id']}") == {"deleted": True}
        assert await client.call("GET", f"/conversations/{new['id']}", status=404)
        assert await client.call("DELETE", f"/conversations/{new['id']}", status=404)


async def test_a_conversation_without_a_title_has_the_usual_one(tmp_path: Path) -> None:
    async with talking(tmp_path, zenflux={"default_title": "Untitled"}) as client:
        assert (await client.call("POST", "/conversations"))["title"] == "Untitled"


async def test_the_list_is_each_users_own_newest_first(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        first, second = await made(client, "1"), await made(client, "2")
        await made(client, "3", "ann")
        listed = await client.call("GET", "/conversations?user_id=local")
        assert [one["id"] for one in listed["conversations"]] == [second["id"], first["id"]]
        await asyncio.sleep(1)
        await client.call("PUT", f"/conversations/{first['id']}?title=touched")
        listed = await client.call("GET", "/conversations?user_id=local&limit=1&offset=0")
        assert [one["id"] for one in listed["conversations"]] == [first["id"]]
        assert listed["total"] == 2
        assert (await client.call("GET", "/conversations?user_id=local&offset=5"))["conversations"] == []
        assert (await client.call("GET", "/conversations"))["total"] == 3


WRONG = ["limit=0", "limit=-1", "limit=1000000000", "limit=x", "limit=1.5", "offset=-1", "limit=9" * 3, "limit=٣"]


@pytest.mark.parametrize("query", WRONG)
@pytest.mark.parametrize("path", ["/conversations", "/conversations/{id}/messages"])
async def test_a_page_that_cannot_be(tmp_path: Path, query: str, path: str) -> None:
    async with talking(tmp_path) as client:
        new = await made(client)
        assert await client.call("GET", f"{path.replace('{id}', new['id'])}?{query}", status=400)


async def test_requests_that_are_wrong(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        new = await made(client)
        assert await client.call("PUT", f"/conversations/{new['id']}", status=400)
        assert await client.call("PUT", f"/conversations/{new['id']}?title=%20", status=400)
        assert await client.call("PUT", f"/conversations/{new['id']}?title={'x' * 501}", status=400)
        assert await client.call("POST", "/conversations?agent_id=nobody", status=404)
        assert await client.call("GET", "/conversations/search", status=400)
        assert await client.call("GET", "/conversations/search?q=x&limit=51", status=400)
        assert await client.call("GET", f"/conversations/{new['id']}/messages?order=up", status=400)
        assert await client.call("GET", f"/conversations/{new['id']}/messages?before_cursor=nope", status=400)
        assert await client.call("POST", f"/conversations/{new['id']}/preload?limit=0", status=400)
        for path in ("nope", "nope/messages", "nope/summary"):
            assert await client.call("GET", f"/conversations/{path}", status=404)
        assert await client.call("PATCH", f"/conversations/{new['id']}", status=405)


async def test_what_was_said_is_what_was_streamed(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run = await chat.run("/think /tool clock hello")
        page = await client.call("GET", f"/conversations/{run.conversation_id}/messages")
        user, first, second = page["messages"]
        assert user.items() >= {"role": "user", "content": "/think /tool clock hello", "status": "completed"}.items()
        assert [first["id"], second["id"]] == [message.id for message in run.messages]
        assert [block["type"] for block in first["content"]] == ["thinking", "tool_use", "tool_result"]
        assert [block["type"] for block in second["content"]] == ["text"]
        assert second["content"][0]["text"] == run.words("text")[0]
        assert first["content"][0]["signature"] == "demo-signature"
        assert page["total"] == 3
        assert page["has_more"] is False
        assert page["next_cursor"] is None


async def test_blocks_are_stored_in_the_order_of_their_indexes(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        for words in ("/provider-tool", "/provider-tool /tool clock hello", "/image /think hello", "/fork hello"):
            chat.events.clear()
            run = await chat.run(words)
            page = await client.call("GET", f"/conversations/{run.conversation_id}/messages")
            begun = [event["data"]["content_block"] for event in chat.events if event["type"] == "content_start"]
            stored = [block for one in page["messages"][1:] for block in one["content"]]
            assert [block["type"] for block in stored] == [block["type"] for block in begun], words


async def test_pages_go_back_from_the_newest(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run = await chat.run("one")
        for word in ("two", "three"):
            await chat.run(word, conversation_id=run.conversation_id)
        path = f"/conversations/{run.conversation_id}/messages"
        everything = [m["id"] for m in (await client.call("GET", path))["messages"]]
        assert len(everything) == 6
        newest = await client.call("GET", f"{path}?limit=4&order=desc")
        assert [m["id"] for m in newest["messages"]] == everything[:1:-1], "the page reverses what it gets"
        assert newest["has_more"] is True
        assert newest["next_cursor"] == everything[2]
        for order in ("", "&order=asc", "&order=desc"):
            before = await client.call("GET", f"{path}?limit=4&before_cursor={newest['next_cursor']}{order}")
            assert [m["id"] for m in before["messages"]] == everything[:2], "in the order in which they were said"
            assert (before["has_more"], before["next_cursor"]) == (False, None)
        older = await client.call("GET", f"{path}?limit=1&before_cursor={newest['next_cursor']}")
        assert ([m["id"] for m in older["messages"]], older["next_cursor"]) == (everything[1:2], everything[1])
        first = await client.call("GET", f"{path}?limit=4")
        assert [m["id"] for m in first["messages"]] == everything[:4]
        assert (first["has_more"], first["next_cursor"]) == (True, None)
        oldest = await client.call("GET", f"{path}?limit=2&order=asc&offset=1")
        assert [m["id"] for m in oldest["messages"]] == everything[1:3]
        assert oldest["has_more"] is True


@pytest.mark.parametrize("words", ["100%_sure", "' OR 1=1 --", "(a|b)*[", "\\d+", "$where", "🦉", "a\nb", "ß"])
async def test_characters_are_just_characters(tmp_path: Path, words: str) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        await chat.run("something else entirely")
        titled = await made(client, f"about {words}!")
        run = await chat.run(f"tell me of {words.upper()} please" if words.isascii() else f"tell me of {words} please")
        found = await client.call("GET", "/conversations/search", params={"q": words, "user_id": "local"})
        assert {(hit["conversation"]["id"], hit["match_type"]) for hit in found["conversations"]} == {
            (titled["id"], "title"), (run.conversation_id, "content")}
        assert found["total"] == 2
        assert all(words.lower() in hit["snippet"].lower() for hit in found["conversations"])


async def test_a_search_is_bounded(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        for number in range(5):
            await made(client, f"number {number}")
        found = await client.call("GET", "/conversations/search?q=NUMBER&limit=2")
        assert len(found["conversations"]) == 2
        assert found["total"] == 5


async def test_preload_and_summary(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run = await chat.run("/compact x hello")
        told = await client.call("POST", f"/conversations/{run.conversation_id}/preload?limit=1")
        assert told.items() >= {
            "conversation_id": run.conversation_id, "message_count": 2, "effective_limit": 1}.items()
        assert told["oldest_cursor"] == run.messages[-1].id
        told = await client.call("GET", f"/conversations/{run.conversation_id}/summary")
        assert told["message_count"] == 2
        assert told["last_message"].startswith("You said")
        assert "messages were exchanged" in told["summary"]


async def test_a_message_is_processing_while_it_is_said(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/think /ask")
        await chat.asked()
        page = await client.call("GET", f"/conversations/{begun['conversation_id']}/messages")
        assert page["messages"][-1]["status"] == "processing"
        await client.call("POST", f"/session/{begun['session_id']}/stop")
        await chat.over(begun["session_id"])
        page = await client.call("GET", f"/conversations/{begun['conversation_id']}/messages")
        assert page["messages"][-1]["content"][-1]["type"] == "tool_result"


# -- other dialects ---------------------------------------------------------------------------------------------------

async def test_a_session_of_another_dialect_is_a_conversation(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        http, url = client.served.http, client.served.url("/aap/sessions")
        history = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "before"},
                   {"role": "assistant", "content": "indeed"}]
        tools = [{"name": "clock", "trust": True}]
        async with http.post(url, json={"agent": {"name": "demo", "tools": tools}, "messages": history}) as answer:
            session_id = (await answer.json())["sessionId"]
        turn = {"messages": [{"role": "user", "content": "/tool clock one"}]}
        async with http.post(f"{url}/{session_id}/turns", json=turn) as answer:
            assert answer.status == 200
        listed = await client.call("GET", "/conversations?user_id=local")
        assert [one["id"] for one in listed["conversations"]] == [session_id]
        said = (await client.call("GET", f"/conversations/{session_id}/messages"))["messages"]
        assert [(m["role"], m["content"]) for m in said[:2]] == [
            ("user", "before"), ("assistant", [{"type": "text", "text": "indeed"}])]
        assert len({m["id"] for m in said}) == len(said) == 5
        run = await chat.run("two", conversation_id=session_id)
        async with http.get(f"{url}/{session_id}/history?type=full") as answer:
            words = [m["content"] for m in (await answer.json())["history"]["full"]]
        assert words[-2] == "two"
        assert words[-1] == [{"type": "text", "text": run.words("text")[0]}]


async def test_a_run_of_another_dialect_is_seen_and_stopped(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        http, url = client.served.http, client.served.url("/aap/sessions")
        async with http.post(url, json={"agent": {"name": "demo"}}) as answer:
            session_id = (await answer.json())["sessionId"]
        turn = {"messages": [{"role": "user", "content": "/slow 400"}], "stream": "delta"}
        async with http.post(f"{url}/{session_id}/turns", json=turn) as answer:
            await answer.content.readline()
            [run] = (await client.call("GET", "/sessions"))["sessions"]
            assert run["conversation_id"] == session_id
            await client.call("POST", f"/session/{run['session_id']}/stop")
            assert (await answer.read()).endswith(b'data: {"stopReason":"error"}\n\n')

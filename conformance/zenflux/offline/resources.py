"""Chats over REST, sessions, conversations, confirmations, files and models: what was asked for and what came."""

import re
from collections.abc import Iterator
from typing import Any

from conformance.kit import expect
from conformance.offline.recording import Exchange
from conformance.offline.rule import Rule, rule
from conformance.zenflux import event_shapes
from conformance.zenflux.examination import SCHEMAS
from conformance.zenflux.offline.view import ZenfluxView, hold
from conformance.zenflux.rest_answer import Answer, listed, wrapped
from conformance.zenflux.rest_calls import BASE
from conformance.zenflux.run_contents import as_text

Found = Iterator[Exchange | str]
DATA = """
POST   /chat                               chat_answer       G-ZF-19
GET    /session/{}                         session_info      ZF-TYPE-04,ZF-HTTP-3.1-05
POST   /session/{}/stop                    -                 ZF-HTTP-3.1-02
POST   /session/{}/stop                    stopped           G-ZF-11
POST   /session/{}/rollback                rolled_back       G-ZF-28
POST   /session/{}/rollback                -                 ZF-HTTP-3.1-04
POST   /session/{}/confirm_continue        -                 ZF-HTTP-3.1-03,G-ZF-27
DELETE /session/{}                         -                 ZF-HTTP-3.1-06
GET    /sessions                           session_page      G-ZF-31
GET    /sessions                           -                 ZF-HTTP-3.1-07
POST   /conversations                      conversation      ZF-HTTP-3.2-01,ZF-TYPE-05
GET    /conversations                      conversation_page G-ZF-30
GET    /conversations                      -                 ZF-HTTP-3.2-02
GET    /conversations/{}                   conversation      ZF-HTTP-3.2-03,ZF-TYPE-05
PUT    /conversations/{}                   -                 ZF-HTTP-3.2-04
DELETE /conversations/{}                   -                 ZF-HTTP-3.2-05
GET    /conversations/{}/messages          message_page      G-ZF-29
GET    /conversations/{}/messages          -                 ZF-HTTP-3.2-06
GET    /conversations/search               search_page       G-ZF-30
GET    /conversations/search               -                 ZF-HTTP-3.2-07
POST   /conversations/{}/preload           -                 ZF-HTTP-3.2-08
GET    /conversations/{}/summary           -                 ZF-HTTP-3.2-09
GET    /human-confirmation/pending         -                 ZF-HTTP-3.3-01
POST   /human-confirmation/{}              -                 ZF-HTTP-3.3-02
GET    /human-confirmation/{}              -                 ZF-HTTP-3.3-03
DELETE /human-confirmation/{}              -                 ZF-HTTP-3.3-04
POST   /files/upload                       upload            ZF-HTTP-3.4-01
GET    /models                             -                 ZF-HTTP-3.8-01
GET    /agents                             agent_page        ZF-AG-01.out
POST   /agents                             agent_made        ZF-AG-02.out
GET    /agents/{}                          agent_detail      ZF-AG-03.out
PUT    /agents/{}                          agent_changed     ZF-AG-04.out
DELETE /agents/{}                          agent_named       ZF-AG-05.out
GET    /agents/templates                   template_page     ZF-AG-06.out
POST   /agents/validate                    agent_verdict     ZF-AG-07.out
POST   /agents/reload                      agents_reloaded   ZF-AG-08.out
POST   /agents/{}/reload                   agents_reloaded   ZF-AG-09.out
GET    /agents/{}/prompt                   agent_prompt      ZF-AG-10.out
GET    /agents/{}/mcp                      agent_mcp_page    ZF-MCP-01.out
POST   /agents/{}/mcp/{}                   mcp_server        ZF-MCP-02.out
PUT    /agents/{}/mcp/{}                   mcp_server        ZF-MCP-03.out
DELETE /agents/{}/mcp/{}                   agent_mcp_removed ZF-MCP-04.out
GET    /agents/{}/mcp/available            agent_mcp_choice  ZF-MCP-05.out
POST   /tools/mcp/register                 mcp_registered    ZF-MCP-06.out
GET    /tools/mcp                          mcp_server_page   ZF-MCP-07.out
GET    /tools/mcp/{}                       mcp_server_detail ZF-MCP-08.out
PUT    /tools/mcp/{}                       mcp_server        ZF-MCP-09.out
DELETE /tools/mcp/{}                       mcp_removed       ZF-MCP-10.out
GET    /tools                              tool_page         ZF-TL-01.out
GET    /tools/{}                           tool_detail       ZF-TL-02.out
POST   /tools/register                     tool_registered   ZF-TL-03.out
DELETE /tools/{}                           tool_removed      ZF-TL-04.out
POST   /tools/execute                      tool_outcome      ZF-TL-05.out
POST   /tools/{}/invoke                    tool_outcome      ZF-TL-06.out
GET    /skills/global                      skill_list        ZF-SK-01.out
GET    /skills/instance/{}                 skill_list        ZF-SK-02.out
GET    /skills/detail/{}                   skill_detail      ZF-SK-07.out
GET    /settings                           settings          ZF-SET-01.out
GET    /settings/status                    settings_status   ZF-SET-03.out
GET    /settings/schema                    settings_schema   ZF-SET-04.out
POST   /mem0/search                        memory_list       ZF-MEM-01.out
GET    /mem0/user/{}                       memory_list       ZF-MEM-02.out
POST   /mem0/add                           memories_added    ZF-MEM-03.out
POST   /mem0/batch-update                  memory_batch      ZF-MEM-04.out
GET    /tasks                              task_list         ZF-TASK-01.out
GET    /tasks/{}                           task              ZF-TASK-02.out
POST   /tasks/{}/run                       task_run          ZF-TASK-03.out
POST   /tasks/{}/batch                     task_run          ZF-TASK-04.out
GET    /tasks/scheduled/config             task_list         ZF-TASK-05.out
GET    /tasks/scheduled/status             scheduler         ZF-TASK-06.out
GET    /docs/structure                     document_tree     ZF-DOC-01.out
GET    /docs/content/{}                    document          ZF-DOC-02.out
"""
SPEAKING = ("content_start", "content_delta")
REFUSED = 400  # a code that may come with any status
FIXED = ("search", "pending", "upload", "templates", "schemas", "mcp")


def _asked(view: ZenfluxView, route: str) -> Iterator[tuple[Exchange, tuple[str, ...], Answer]]:
    """The answers of a route; fixed names are not taken for ids."""
    for item, names, answer in view.asked(route):
        if not (names and names[-1] in FIXED):
            yield item, names, answer


def _is_refused(item: Exchange) -> bool:
    """Whether the body says so, whatever the status says."""
    code = item.json.get("code") if isinstance(item.json, dict) else None
    return isinstance(code, int) and code >= REFUSED


def _hold_object(schema: str, value: Any, what: str) -> None:
    """Fail unless an object is as the specification describes it, whichever call shows it."""
    hold(schema, value, what, event_shapes.OBJECTS[schema], event_shapes.OBJECT_MEMBERS.get(schema))


def _data(method: str, path: str, schema: str, ids: str) -> Rule:
    def check(view: ZenfluxView) -> Found:
        for item, names in view.recording.of(f"{method} {BASE}{path}"):
            is_other = item.is_stream or (names and names[-1] in FIXED)
            if item.is_done and not is_other and not _is_refused(item):
                yield item
                with expect.owned("ZF-GEN-03"):
                    data = wrapped(item.reply, SCHEMAS).done()
                if schema in event_shapes.OBJECTS:
                    _hold_object(schema, data, f"the data of {item.asked}")
                elif schema != "-":
                    SCHEMAS.fit(schema, data, f"the data of {item.asked}")

    words = re.findall(r"\w+", f"{method} {path.replace('{}', 'one')} {schema.strip('-')}")
    check.__name__ = "_".join(words).lower()
    check.__doc__ = f"{method} {path} succeeds in the wrapper" + ("." if schema == "-" else f" with `{schema}`.")
    return rule(*ids.split(","), needs=f"successful {method} {path}")(check)


ROUTES = tuple(_data(*line.split()) for line in DATA.strip().splitlines())


def _done(view: ZenfluxView, route: str) -> list[tuple[Exchange, tuple[str, ...], Any]]:
    found = [(item, names, answer) for item, names, answer in _asked(view, route) if answer.is_done]
    return [(item, names, answer.body["data"]) for item, names, answer in found]


@rule("ZF-HTTP-3.1-01", needs="answer to POST /chat")
def a_chat_is_a_stream_or_json(view: ZenfluxView) -> Found:
    """With stream true, or nothing said, the answer is a text/event-stream; with stream false JSON in the wrapper."""
    for item, _ in view.recording.of("POST /api/v1/chat"):
        sent = item.sent if isinstance(item.sent, dict) else {}
        if item.status == 200 and isinstance(sent.get("stream", True), bool) and not _is_refused(item):
            yield item
            wanted = "text/event-stream" if sent.get("stream", True) else "application/json"
            expect.equal("the content type", wanted, item.content_type)
    for spoken in view.completed:
        if not spoken.run.is_socket:
            with expect.owned("ZF-SEQ-01"):
                expect.equal("the first event", "session_start", spoken.run.events[0].type)


@rule("ZF-TYPE-01", "ZF-TYPE-06", needs="message of a conversation")
def messages_have_their_members(view: ZenfluxView) -> Found:
    """Kept messages have id, conversation_id, role, content, status, time and metadata, and their blocks are whole."""
    for item, (name,), data in _done(view, "GET /conversations/{}/messages"):
        for message in listed(data, "messages"):
            yield item
            _hold_object("message", message, "a message of the conversation")
            with expect.owned("ZF-TYPE-06"):
                expect.equal("its conversation", name, message["conversation_id"])


@rule("ZF-TYPE-08", needs="confirmation with a response and metadata that was taken")
def a_confirmation_is_a_response_with_metadata(view: ZenfluxView) -> Found:
    """A confirmation is {response, metadata}."""
    for item, _, _ in _done(view, "POST /human-confirmation/{}"):
        if isinstance(item.sent, dict) and {"response", "metadata"} <= set(item.sent):
            yield item


@rule("G-ZF-24", needs="confirmation without a response")
def a_confirmation_needs_a_response(view: ZenfluxView) -> Found:
    """A confirmation without a response is refused."""
    for item, _, answer in _asked(view, "POST /human-confirmation/{}"):
        if isinstance(item.sent, dict) and "response" not in item.sent:
            yield item
            answer.refused("there is no response")


@rule("ZF-HTTP-3.1-02", needs="session that was stopped, and its run")
def a_stop_stops(view: ZenfluxView) -> Found:
    """After POST /session/{id}/stop the run of the session is cut short, unless it was over."""
    for item, (name,), _ in _done(view, "POST /session/{}/stop"):
        for spoken in view.over:
            if spoken.run.is_socket and spoken.run.session_id == name and spoken.orders[-1] > item.answered:
                yield item
                expect.that(not spoken.is_completed, "the run to be cut short", spoken.run.names)


@rule("ZF-HTTP-3.1-05", needs="look at a session")
def a_session_is_the_one_asked_for(view: ZenfluxView) -> Found:
    """GET /session/{id} shows the session of that id."""
    for item, (name,), data in _done(view, "GET /session/{}"):
        yield item
        expect.equal("session_id", name, (data or {}).get("session_id"))


@rule("ZF-HTTP-3.1-07", needs="list of sessions while one runs, or after one is over")
def active_sessions_are_listed(view: ZenfluxView) -> Found:
    """GET /sessions lists a session while it runs, and no longer when it is over."""
    for item, _, data in _done(view, "GET /sessions"):
        names = [str(it.get("session_id")) for it in listed(data, "sessions")]
        for spoken in view.over:
            if not spoken.run.is_socket:
                continue
            name = spoken.run.session_id
            told = [order for order, it in zip(spoken.orders, spoken.run.events, strict=True) if it.type in SPEAKING]
            if spoken.is_completed and told and told[0] < item.order and item.ended < told[-1]:
                yield item
                expect.that(name in names, "a running session in the list", names)
            elif spoken.orders[-1] < item.order:
                yield item
                expect.that(name not in names, "no session in the list that is over", name)


@rule("ZF-HTTP-3.2-01", needs="conversation that was made")
def a_conversation_is_made(view: ZenfluxView) -> Found:
    """A conversation has the user and title it was made with, and an id of its own."""
    seen: set[str] = set()
    for item, _, data in _done(view, "POST /conversations"):
        yield item
        wanted = {name: item.param(name) for name in ("title",) if item.param(name)}
        if item.param("user_id"):
            wanted["user_id"] = item.param("user_id")
        made = expect.keyed("a conversation", data, "id")
        expect.equal("user and title", wanted, {name: made.get(name) for name in wanted})
        expect.that(str(made["id"]) not in seen, "an id for each", made["id"])
        seen.add(str(made["id"]))


@rule("ZF-HTTP-3.2-02", needs="list of conversations")
def conversations_are_listed_in_pages(view: ZenfluxView) -> Found:
    """A list has conversations of the user asked for, and not more than limit."""
    for item, _, data in _done(view, "GET /conversations"):
        found = listed(data, "conversations")
        yield item
        limit = item.param("limit")
        if limit and limit.isdigit():
            expect.that(len(found) <= int(limit), f"at most {limit} conversations", len(found))
        for it in found:
            _hold_object("conversation", it, "a listed conversation")
            expect.that(item.param("user_id") in (None, it["user_id"]), "conversations of the user", it)


@rule("ZF-HTTP-3.2-03", needs="look at a conversation")
def a_conversation_is_the_one_asked_for(view: ZenfluxView) -> Found:
    """GET /conversations/{id} shows the conversation of that id."""
    for item, (name,), data in _done(view, "GET /conversations/{}"):
        yield item
        expect.equal("id", name, (data or {}).get("id"))


@rule("ZF-HTTP-3.2-04", needs="look at a conversation that was renamed")
def a_conversation_is_renamed(view: ZenfluxView) -> Found:
    """After PUT /conversations/{id}?title the conversation has that title."""
    for item, (name,), _ in _done(view, "PUT /conversations/{}"):
        later = [(it, data) for it, names, data in _done(view, "GET /conversations/{}") if names == (name,)]
        later = [(it, data) for it, data in later if it.order > item.ended]
        if later and item.param("title"):
            yield later[0][0]
            expect.equal("the title", item.param("title"), later[0][1].get("title"))


@rule("ZF-HTTP-3.2-05", needs="request for a conversation that was deleted")
def a_conversation_is_deleted(view: ZenfluxView) -> Found:
    """After DELETE /conversations/{id} whatever is asked of it is refused."""
    gone = {names[0]: item for item, names, _ in _done(view, "DELETE /conversations/{}")}
    for route in ("GET /conversations/{}", "DELETE /conversations/{}", "GET /conversations/{}/messages"):
        for item, (name,), answer in _asked(view, route):
            if name in gone and gone[name].ended < item.order:
                yield item
                answer.refused("it was deleted")


@rule("ZF-HTTP-3.2-06", needs="messages of a conversation with a run before them")
def what_was_said_is_listed(view: ZenfluxView) -> Found:
    """The messages of a conversation have what the user said, in the order it was said."""
    for item, (name,), data in _done(view, "GET /conversations/{}/messages"):
        runs = [it for it in view.completed if it.run.is_socket and it.run.conversation_id == name]
        runs = sorted((it for it in runs if it.orders[-1] < item.order), key=lambda it: it.orders[0])
        if runs and not item.query and all(isinstance(it.asked.get("message"), str) for it in runs):
            yield item
            kept = [as_text(it["content"]) for it in listed(data, "messages") if it.get("role") == "user"]
            places = [kept.index(it.asked["message"]) if it.asked["message"] in kept else -1 for it in runs]
            expect.that(-1 not in places, "all that the user said", kept)


@rule("ZF-HTTP-3.2-07", needs="search with a limit")
def searches_are_limited(view: ZenfluxView) -> Found:
    """A search finds conversations, at most limit of them."""
    for item, _, data in _done(view, "GET /conversations/search"):
        found = listed(data, "conversations", "results")
        yield item
        limit = item.param("limit")
        expect.that(not limit or len(found) <= int(limit), f"at most {limit}", len(found))
        for it in found:
            _hold_object("conversation", it.get("conversation", it), "a conversation that was found")


@rule("ZF-HTTP-3.3-01", needs="list of what waits, after an answer")
def what_is_answered_no_longer_waits(view: ZenfluxView) -> Found:
    """A request that was cancelled or answered under its id is no longer pending."""
    answered = [*_done(view, "POST /human-confirmation/{}"), *_done(view, "DELETE /human-confirmation/{}")]
    for item, _, data in _done(view, "GET /human-confirmation/pending"):
        waiting = [str(it.get("request_id")) for it in listed(data, "requests", "pending")]
        yield item
        gone = [names[0] for it, names, _ in answered if it.ended < item.order]
        expect.equal("requests that were answered", [], [name for name in waiting if name in gone])


@rule("ZF-HTTP-3.3-02", needs="answer to a confirmation, and its run")
def the_run_goes_on_after_an_answer(view: ZenfluxView) -> Found:
    """After an answer the run goes on to its end."""
    for item, (name,), _ in _done(view, "POST /human-confirmation/{}"):
        for spoken in view.over:
            if spoken.run.is_socket and spoken.run.session_id == name and spoken.orders[0] < item.order:
                yield item
                expect.that(spoken.orders[-1] > item.order, "the run to go on", spoken.run.names)


@rule("ZF-HTTP-3.3-03", needs="look at a request")
def a_request_is_shown(view: ZenfluxView) -> Found:
    """GET /human-confirmation/{request_id} shows a request."""
    for item, (name,), data in _done(view, "GET /human-confirmation/{}"):
        yield item
        is_it = isinstance(data, dict) and name in (data.get("request_id"), data.get("session_id"))
        expect.that(is_it, f"the request {name}", data)


@rule("G-ZF-24", needs="second answer to a request")
def a_second_answer_is_a_404(view: ZenfluxView) -> Found:
    """What was answered under an id cannot be answered under it again."""
    done: dict[str, Exchange] = {}
    for item, (name,), answer in _asked(view, "POST /human-confirmation/{}"):
        has_run = any(it.run.events and it.run.session_id == name for it in view.spoken)
        if name in done and done[name].ended < item.order and not has_run:
            yield item
            answer.missing("it was answered before")
        if answer.is_done:
            done[name] = item


@rule("G-ZF-29", needs="messages with a limit")
def limits_of_messages_are_kept(view: ZenfluxView) -> Found:
    """A limit outside 1 to 200 is refused, one inside is kept, and messages come in the order asked for."""
    for item, _, answer in _asked(view, "GET /conversations/{}/messages"):
        limit = item.param("limit")
        if limit is None:
            continue
        yield item
        if not limit.isdigit() or not 1 <= int(limit) <= 200:
            answer.refused(f"limit is {limit}")
        elif answer.is_done:
            found = listed(answer.body["data"], "messages")
            expect.that(len(found) <= int(limit), f"at most {limit} messages", len(found))
            times = [str(it.get("created_at")) for it in found]
            is_back = item.param("order") == "desc" and item.param("before_cursor") is None
            expect.equal("the order of the messages", sorted(times, reverse=is_back), times)


@rule("ZF-HTTP-3.8-01", needs="list of models")
def models_are_listed_and_narrowed(view: ZenfluxView) -> Found:
    """GET /models lists models as objects; type and provider narrow it."""
    for item, _, data in _done(view, "GET /models"):
        yield item
        for model in listed(data, "models"):
            for name in ("type", "provider"):
                expect.that(item.param(name) in (None, model.get(name)), f"models of {name} {item.param(name)}", model)

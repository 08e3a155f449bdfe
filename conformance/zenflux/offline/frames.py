"""Sections frames, responses and connection: what crossed the lines, frame by frame."""

from collections.abc import Iterator
from typing import Any

from conformance.kit import expect
from conformance.offline.recording import Exchange
from conformance.offline.rule import rule
from conformance.zenflux.chat_socket import OUTSIDE_RUNS, whose_frame
from conformance.zenflux.examination import SCHEMAS
from conformance.zenflux.offline.view import RecordedFrame, ZenfluxView, heard
from conformance.zenflux.rest_calls import BASE

Found = Iterator[Exchange | str]
METHODS = ("chat.send", "chat.abort")


def _exchanges(view: ZenfluxView) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Every request with its response: the place of the response, and both."""
    for _, said in view.lines:
        asked: dict[str, dict[str, Any]] = {}
        for it in said:
            if it.frame.is_sent and it.kind == "req" and it.body and isinstance(it.body.get("id"), str):
                asked[it.body["id"]] = it.body
            elif it.kind == "res" and not it.frame.is_sent and it.body and str(it.body.get("id")) in asked:
                yield it.frame.place, asked[str(it.body["id"])], it.body


def _sends(view: ZenfluxView) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for place, asked, response in _exchanges(view):
        if asked.get("method") == "chat.send":
            params = asked.get("params")
            yield place, params if isinstance(params, dict) else {}, response


def _is_right(params: dict[str, Any]) -> bool:
    """Whether nothing is wrong with what every chat.send needs."""
    lists = all(isinstance(params.get(name, []), list) for name in ("background_tasks", "files"))
    names = all(isinstance(params.get(name), str) and params[name] for name in ("message", "user_id"))
    rest = isinstance(params.get("variables", {}), dict) and isinstance(params.get("stream", True), bool)
    return lists and names and rest and "agent_id" not in params


@rule("ZF-WS-01", "ZF-GEN-01", needs="line at /api/v1/ws/chat, and an answer below /api/v1")
def the_endpoint_opens(view: ZenfluxView) -> Found:
    """/api/v1/ws/chat is a WebSocket on which the server speaks; beside it the REST half answers below /api/v1."""
    for item, said in view.lines:
        if any(not it.frame.is_sent for it in said) and any(it.path.startswith(BASE) for it, _ in view.answered):
            yield item
            expect.that(item.status in (None, 101), "a WebSocket", item.status)


@rule("ZF-WS-02", needs="frame of the server")
def every_frame_is_one_json_object(view: ZenfluxView) -> Found:
    """Responses, events and pongs are JSON objects in text frames, and there is no other type."""
    for _, said in view.lines:
        for it in said:
            if not it.frame.is_sent:
                yield it.frame.place
                expect.that(it.body is not None, "a JSON object in a text frame", it.frame.text or "binary")
                SCHEMAS.fit("frame", it.body, "a frame", whose_frame(it.body))


@rule("ZF-WS-03", "ZF-WS-14", needs="request")
def a_response_has_the_id_of_its_request(view: ZenfluxView) -> Found:
    """Each request is answered once under its own id, before the answer to a later ping."""
    for item, said in view.lines:
        asked: dict[str, int] = {}
        told = False
        for it in said:
            name = (it.body or {}).get("id")
            if it.frame.is_sent and it.kind == "req" and isinstance(name, str):
                asked[name] = asked.get(name, 0) + 1
                told = True
            elif not it.frame.is_sent and it.kind == "res" and str(name) in asked:
                yield it.frame.place
                asked[str(name)] -= 1
                expect.that(asked[str(name)] >= 0, "one response to a request", it.body)
        answers = len(heard(said, "res"))
        if told and len(asked) > answers and _is_answered(said):
            yield item
            expect.equal("requests without a response", [], sorted(name for name, left in asked.items() if left > 0))


def _is_answered(said: list[RecordedFrame]) -> bool:
    """Whether the line went on after the last request: a pong came to a ping that was sent after it."""
    requests = [place for place, it in enumerate(said) if it.frame.is_sent and it.kind == "req"]
    pings = [place for place, it in enumerate(said) if it.frame.is_sent and it.kind == "ping"]
    after = [place for place in pings if place > max(requests, default=-1)]
    return bool(after) and any(it.kind == "pong" for it in said[after[0] :])


@rule("ZF-WS-04", needs="request of another method")
def other_methods_are_refused(view: ZenfluxView) -> Found:
    """chat.send and chat.abort are the methods; any other is answered with ok false."""
    for place, asked, response in _exchanges(view):
        if asked.get("method") not in METHODS:
            yield place
            expect.equal("ok", False, response.get("ok"))


def _needed(view: ZenfluxView, name: str) -> Found:
    for place, params, response in _sends(view):
        if not isinstance(params.get(name), str):
            yield place
            expect.equal(f"ok without {name}", False, response.get("ok"))


@rule("ZF-WS-05", needs="chat.send without a message")
def a_message_is_needed(view: ZenfluxView) -> Found:
    """chat.send without a message, or with one that is no string, is answered with ok false."""
    yield from _needed(view, "message")


@rule("ZF-WS-06", needs="chat.send without a user_id")
def a_user_is_needed(view: ZenfluxView) -> Found:
    """chat.send without a user_id, or with one that is no string, is answered with ok false."""
    yield from _needed(view, "user_id")


@rule("ZF-WS-07", needs="run with and one without a conversation_id")
def a_conversation_is_continued_or_new(view: ZenfluxView) -> Found:
    """With conversation_id the run belongs to it; without one, to a conversation that was not there before."""
    seen: dict[str, int] = {}
    runs = sorted((it for it in view.over if it.run.is_socket), key=lambda it: it.orders[0])
    for spoken in runs:
        name, wanted = spoken.run.conversation_id, spoken.asked.get("conversation_id")
        yield spoken.exchange
        if wanted:
            expect.equal("the conversation of the run", wanted, name)
        elif spoken.asked:
            earlier = seen.get(name, spoken.orders[0]) < spoken.orders[0]
            expect.that(not earlier, "a new conversation for a run that names none", name)
        seen.setdefault(name, spoken.orders[-1])


def _taken(view: ZenfluxView, member: str) -> Found:
    for place, params, response in _sends(view):
        is_known = not params.get("conversation_id") or response.get("ok") is True
        if member in params and _is_right(params) and is_known:  # which conversations there are is not told
            yield place
            expect.equal(f"ok with {member}", True, response.get("ok"))


@rule("ZF-WS-10", needs="chat.send with background_tasks")
def tasks_are_taken(view: ZenfluxView) -> Found:
    """chat.send takes background_tasks, a list of strings."""
    yield from _taken(view, "background_tasks")


@rule("ZF-WS-11", needs="chat.send with files")
def files_are_taken(view: ZenfluxView) -> Found:
    """chat.send takes files, a list of file references."""
    yield from _taken(view, "files")


@rule("ZF-WS-12", needs="chat.send with variables")
def variables_are_taken(view: ZenfluxView) -> Found:
    """chat.send takes variables, an object."""
    yield from _taken(view, "variables")


@rule("ZF-WS-13", needs="chat.abort")
def an_abort_names_a_session(view: ZenfluxView) -> Found:
    """chat.abort without a session_id, or with one that is no string, is refused."""
    for place, asked, response in _exchanges(view):
        params = asked.get("params") if isinstance(asked.get("params"), dict) else {}
        if asked.get("method") == "chat.abort" and not isinstance((params or {}).get("session_id"), str):
            yield place
            expect.equal("ok without a session_id", False, response.get("ok"))


@rule("ZF-WS-15", needs="refused request")
def a_refusal_says_why(view: ZenfluxView) -> Found:
    """A response that is not ok has an error with a code and a message."""
    for place, _, response in _exchanges(view):
        if response.get("ok") is False:
            yield place
            SCHEMAS.fit("frame", response, "a response")


@rule("G-ZF-08", needs="request of another method, or without what it needs")
def codes_say_what_is_wrong(view: ZenfluxView) -> Found:
    """METHOD_NOT_FOUND for another method, VALIDATION_ERROR for what a method lacks."""
    for place, asked, response in _exchanges(view):
        params = asked.get("params") if isinstance(asked.get("params"), dict) else {}
        code = (response.get("error") or {}).get("code") if isinstance(response.get("error"), dict) else None
        needed = {"chat.send": "user_id", "chat.abort": "session_id"}.get(str(asked.get("method")))
        if asked.get("method") not in METHODS:
            yield place
            expect.equal("the code", "METHOD_NOT_FOUND", code)
        elif not isinstance((params or {}).get(str(needed)), str):
            yield place
            expect.equal("the code", "VALIDATION_ERROR", code)


@rule("ZF-WS-16", needs="event frame")
def an_event_frame_names_its_event(view: ZenfluxView) -> Found:
    """In every event frame `event` is the type of the payload, and seq a whole number."""
    for _, said in view.lines:
        for it in heard(said, "event"):
            body = it.body or {}
            payload = body.get("payload")
            if body.get("event") in OUTSIDE_RUNS or not isinstance(payload, dict):
                continue
            yield it.frame.place
            expect.equal("the event of a frame, as its payload has it", payload.get("type"), body.get("event"))
            expect.that(type(body.get("seq")) is int, "a whole number as seq", body.get("seq"))


@rule("G-ZF-07", needs="chat.send that was accepted")
def the_response_comes_first(view: ZenfluxView) -> Found:
    """chat.send is answered with status "streaming" and the ids that the events then carry."""
    runs = {spoken.run.session_id: spoken.run for spoken in view.spoken if spoken.run.events}
    for place, _, response in _sends(view):
        payload = response.get("payload")
        if response.get("ok") and isinstance(payload, dict):
            yield place
            expect.equal("status", "streaming", payload.get("status"))
            expect.subset("the payload", ["session_id", "conversation_id", "message_id"], payload)
            run = runs.get(str(payload["session_id"]))
            expect.that(run is None or run.conversation_id == payload["conversation_id"], "the ids of the run", payload)


@rule("G-ZF-09", needs="chat.send with an empty message")
def files_may_stand_for_words(view: ZenfluxView) -> Found:
    """An empty message is taken when files come with it, and is a VALIDATION_ERROR when nothing does."""
    for place, params, response in _sends(view):
        if params.get("message") == "" and isinstance(params.get("user_id"), str):
            yield place
            expect.equal("ok", bool(params.get("files")), response.get("ok"))


@rule("G-ZF-10", needs="malformed frame of the client")
def malformed_frames_are_survived(view: ZenfluxView) -> Found:
    """After what is not JSON, no object, or of an unknown type the line goes on."""
    for item, said in view.lines:
        bad = [place for place, it in enumerate(said) if it.frame.is_sent and it.kind not in ("req", "ping")]
        if bad:
            yield item
            later = [it for it in said[bad[-1] + 1 :] if it.frame.is_sent]
            answered = [it for it in said[bad[-1] + 1 :] if not it.frame.is_sent]
            expect.that(bool(answered) or not later, "the line to go on", "nothing came after it")


@rule("G-ZF-10", needs="request without an id or a method")
def requests_without_id_or_method_are_answered(view: ZenfluxView) -> Found:
    """A request without a method is answered with METHOD_NOT_FOUND."""
    for place, asked, response in _exchanges(view):
        if "method" not in asked:
            yield place
            error = response.get("error") if isinstance(response.get("error"), dict) else {}
            expect.equal("the code", "METHOD_NOT_FOUND", (error or {}).get("code"))

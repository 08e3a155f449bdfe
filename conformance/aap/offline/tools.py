"""Section tools: who ran a tool, who was asked, and how the agent went on."""

import re
from collections.abc import Iterator
from typing import Any

from conformance.aap.agent import Agent
from conformance.aap.exchange import plain
from conformance.aap.offline.view import AapView, RecordedTurn, denied
from conformance.aap.turn import Turn
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping, mappings
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]
IMAGE = re.compile(r"https://[^/?#\s]+|data:image/[^,]+;base64,[A-Za-z0-9+/=_-]+$")
KINDS = {
    "text": ("text",),
    "thinking": ("thinking",),
    "tool_use": ("toolCallId", "name", "input"),
    "image": ("url",),
}


def _calls(view: AapView) -> Iterator[tuple[RecordedTurn, Turn, str, dict[str, Any]]]:
    """Every call of a turn that did not fail, with who has to run it: trusted, untrusted or client.

    Calls of what is neither enabled nor the client's are left out: trust is given by name, to tools of /meta.
    """
    for turn, told in view.told:
        setup = view.setup(turn.session, turn.exchange.order)
        if setup is not None and (told.body is not None or told.named("turn_stop")) and told.stop != "error":
            kinds = {name: "trusted" if trust else "untrusted" for name, trust in setup.tools.items()}
            kinds |= dict.fromkeys(setup.client_names, "client")
            yield from ((turn, told, kinds[call["name"]], call) for call in told.calls if call["name"] in kinds)


def _answers(view: AapView, role: str) -> Iterator[tuple[RecordedTurn, Turn, dict[str, Any]]]:
    """Every accepted answer of this role, with what came of it."""
    for turn, told in view.told:
        for message in turn.messages:
            if message.get("role") == role:
                yield turn, told, message


def _settles(view: AapView, turn: RecordedTurn) -> bool:
    """Whether every open call has its answer: the client's tools a result, the untrusted ones a permission."""
    setup, pending = view.setup(turn.session, turn.exchange.order - 1), view.pending(turn)
    if setup is None or pending is None:
        return False
    wanted = {call["toolCallId"]: "tool" if call["name"] in setup.client_names else None for call in pending}
    wanted |= {call["toolCallId"]: "tool_permission" for call in pending if call["name"] in setup.tools}
    return wanted == {str(it.get("toolCallId")): it.get("role") for it in turn.messages}


@rule("AAP-TOOL-01", needs="call of a client tool")
def a_client_tool_stops_the_turn(view: AapView) -> Found:
    """A client tool is called, has no result, and the turn stops with tool_use."""
    for turn, told, who, call in _calls(view):
        if who == "client":
            yield turn.exchange
            expect.equal("the stop reason", "tool_use", told.stop)
            expect.that(call["toolCallId"] not in told.exchange.results, "no result of a client tool", told.shown)


@rule("AAP-TOOL-01", needs="result of a client tool")
def the_agent_goes_on_from_a_result(view: AapView) -> Found:
    """After the client's results the agent says or does something."""
    for turn, told, _ in _answers(view, "tool"):
        if turn.roles == {"tool"} and told.stop != "error" and _settles(view, turn):
            yield turn.exchange
            expect.that(bool(told.exchange.said), "the agent to say something", told.shown)


@rule("AAP-TOOL-02", needs="permission that was granted")
def a_granted_tool_is_run_by_the_server(view: AapView) -> Found:
    """Once granted, the server's own result is told in the same turn."""
    for turn, told, message in _answers(view, "tool_permission"):
        if message.get("granted") is True and told.stop != "error" and _settles(view, turn):
            yield turn.exchange
            expect.subset("the calls with a result", [str(message["toolCallId"])], told.exchange.results)
            expect.that(bool(told.exchange.said), "the agent to say something", told.shown)


@rule("AAP-TOOL-02", needs="permission that was denied, with a full history after it")
def a_denied_tool_is_said_to_be_denied(view: AapView) -> Found:
    """A denial enters the history as a tool message for the call, and the agent goes on."""
    for turn, told, message in _answers(view, "tool_permission"):
        later = [kept for it, kept in view.full_of(turn.session) if it.order > turn.exchange.ended]
        if message.get("granted") is False and later and told.stop != "error":
            yield turn.exchange
            expect.that(not _settles(view, turn) or bool(told.exchange.said), "the agent to go on", told.shown)
            kept = [it for it in later[0] if it["role"] == "tool" and it["toolCallId"] == message["toolCallId"]]
            is_there = len(kept) == 1 and bool(plain(kept[0]["content"]))
            expect.that(is_there, "one tool message that says the call was denied", kept)


@rule("AAP-TOOL-03", "AAP-SSE-05", needs="call of a trusted server tool")
def a_trusted_tool_runs_inline(view: AapView) -> Found:
    """A trusted tool's result is told in the turn of its call."""
    for turn, told, who, call in _calls(view):
        if who == "trusted":
            yield turn.exchange
            expect.subset("the calls with a result", [call["toolCallId"]], told.exchange.results)


@rule("AAP-TOOL-03", "AAP-TOOL-02", needs="call of a server tool that is not trusted")
def trust_must_be_given(view: AapView) -> Found:
    """An untrusted tool stops the turn and has no result before permission is given."""
    for turn, told, who, call in _calls(view):
        if who == "untrusted":
            yield turn.exchange
            expect.equal("the stop reason", "tool_use", told.stop)
            expect.that(call["toolCallId"] not in told.exchange.results, "no result without permission", told.shown)


@rule("AAP-TOOL-04", needs="turn with calls of all three kinds")
def three_kinds_at_once(view: AapView) -> Found:
    """The trusted results come inline, the turn stops once, and exactly the others are left open."""
    kinds: dict[int, tuple[RecordedTurn, Turn, dict[str, set[str]]]] = {}
    for turn, told, who, call in _calls(view):
        found = kinds.setdefault(id(turn), (turn, told, {}))
        found[2].setdefault(who, set()).add(call["toolCallId"])
    for turn, told, calls in kinds.values():
        if len(calls) == 3:
            yield turn.exchange
            expect.equal("the stop reason", "tool_use", told.stop)
            inline = set().union(*calls.values()) & set(told.exchange.results)
            expect.equal("the calls with an inline result", calls["trusted"], inline)
            if told.body is None:
                expect.equal("stops", 1, len(told.named("turn_stop")))


@rule("AAP-TOOL-04", needs="answer of several kinds at once")
def answers_of_both_kinds_come_at_once(view: AapView) -> Found:
    """One POST with results and permissions for all open calls is taken, and the agent goes on."""
    for turn in view.turns:
        if turn.roles != {"tool", "tool_permission"} or denied(turn.exchange):
            continue
        if _settles(view, turn):
            yield turn.exchange
            expect.status(turn.exchange.reply, 200)
            if turn.told is not None and turn.told.stop != "error":
                expect.that(bool(turn.told.exchange.said), "the agent to say something", turn.told.shown)


@rule("AAP-TOOL-05", needs="content block in an answer")
def content_is_made_of_known_blocks(view: AapView) -> Found:
    """Blocks in replies and histories are text, thinking, tool_use or image."""
    replies = [turn.exchange for turn in view.turns if turn.is_accepted and turn.exchange.content_type.endswith("json")]
    for item in [*(item for item, _ in view.histories if item.status == 200), *replies]:
        found = [block for content in _contents(item.json) for block in mappings(content)]
        for block in found:
            yield item
            expect.member("the type of a block", KINDS, block.get("type"))
            expect.subset(f"a {block['type']} block", KINDS[block["type"]], block)


def _contents(body: Any) -> list[Any]:
    histories = mapping(mapping(body).get("history")).values()
    listed = [mapping(body).get("messages"), *histories]
    return [message.get("content") for messages in listed for message in mappings(messages)]


def _images(view: AapView) -> Iterator[tuple[RecordedTurn, Agent, list[str]]]:
    """The turns that hold images, the agents that they were sent to, and the addresses of the images."""
    for turn in view.turns:
        agent = view.agent_of(turn.session)
        sent = [block for message in turn.messages for block in mappings(message.get("content"))]
        urls = [str(block.get("url")) for block in sent if block.get("type") == "image"]
        if agent is not None and urls and not denied(turn.exchange):
            yield turn, agent, urls


def _problem(agent: Agent, urls: list[str]) -> str | None:
    """Why the images may be refused, if they may."""
    kinds = {"data" if url.startswith("data:") else "http" for url in urls}
    if kinds - agent.image_kinds:
        return f"{agent.name} does not declare the image kind"
    strange = [url for url in urls if not IMAGE.match(url)]
    return f"{strange[0]!r} is neither an https URL nor a data URI in base64" if strange else None


@rule("AAP-TOOL-05", needs="image of a declared kind")
def images_are_taken_if_declared(view: AapView) -> Found:
    """An image of a declared kind is taken."""
    for turn, agent, urls in _images(view):
        is_usual = turn.mode in agent.modes and turn.roles == {"user"} and turn.exchange.status != 409
        if _problem(agent, urls) is None and is_usual:
            yield turn.exchange
            expect.status(turn.exchange.reply, 200)


@rule("AAP-TOOL-07", needs="image of another form, or of a kind that is not declared")
def other_images_are_refused(view: AapView) -> Found:
    """An image of another form, or of a kind the agent does not declare, is a 4xx."""
    for turn, agent, urls in _images(view):
        if (problem := _problem(agent, urls)) is not None:
            yield turn.exchange
            expect.refused(turn.exchange.reply, problem)


@rule("AAP-TOOL-01", "AAP-TOOL-06", needs="result for a call that was open")
def right_results_are_taken(view: AapView) -> Found:
    """Results, strings or blocks, for exactly the calls that are open are accepted."""
    for turn in view.turns:
        if turn.roles != {"tool"} or denied(turn.exchange):
            continue
        bare = set(mapping(turn.exchange.sent)) <= {"messages", "stream"}
        is_sound = all(isinstance(it.get("content"), (str, list)) for it in turn.messages)
        if bare and is_sound and _settles(view, turn):
            yield turn.exchange
            expect.status(turn.exchange.reply, 200)


@rule("AAP-TOOL-01", "AAP-TOOL-06", needs="client's result with a full history after it")
def results_are_kept_as_they_were(view: AapView) -> Found:
    """A client's result, a string or blocks, is in the history as it was sent."""
    for turn, _, message in _answers(view, "tool"):
        later = [kept for it, kept in view.full_of(turn.session) if it.order > turn.exchange.ended]
        if later:
            yield turn.exchange
            kept = [it for it in later[0] if it["role"] == "tool" and it["toolCallId"] == message["toolCallId"]]
            seen = [plain(it["content"]) for it in kept]
            expect.equal("the result in the history", [plain(message["content"])], seen)

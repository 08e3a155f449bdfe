"""Section sessions: what was created, shown, listed and deleted in the recording."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from conformance.aap.agent import Agent
from conformance.aap.examination import SCHEMAS
from conformance.aap.exchange import exact
from conformance.aap.offline.view import AapView, Setup, refusable
from conformance.kit import expect
from conformance.kit.json_round_trip import has_huge
from conformance.kit.schemas import is_schema
from conformance.offline.recording import Exchange, mapping, mappings
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]
LONG = 8


@rule("AAP-SESS-01", needs="session that was created")
def a_session_is_created(view: AapView) -> Found:
    """POST /sessions that succeeds gives 201 and {sessionId}, an id of its own."""
    seen: set[str] = set()
    for item in view.creations:
        if (item.status or 0) < 300:
            yield item
            SCHEMAS.fit("created", expect.status(item.reply, 201).json(), f"the answer to {item.asked}")
            name = item.json["sessionId"]
            expect.that(name not in seen, "every session to have an id of its own", name)
            seen.add(name)


@rule("AAP-SESS-01", "AAP-SESS-05", needs="history of a session to which nothing was said yet")
def creating_does_not_run_the_agent(view: AapView) -> Found:
    """Before its first turn the history of a session is what it was created with, and nothing else."""
    for item, session, kept in view.full:
        made = view.created.get(session)
        if made is not None and view.quiet(session, made.order, item.ended):
            yield item
            expect.equal("the history of a new session", exact(mappings(made.sent.get("messages"))), exact(kept))


@rule("AAP-SESS-05", needs="history, after a turn, of a session that was created with messages")
def seed_messages_begin_the_history(view: AapView) -> Found:
    """The messages a session was created with stay the beginning of its history."""
    for item, session, kept in view.full:
        made = view.created.get(session)
        seed = mappings(made.sent.get("messages")) if made is not None else []
        if seed and not view.quiet(session, 0, item.order):
            yield item
            expect.equal("the start of the history", exact(seed), exact(kept[: len(seed)]))


def _agent_name(item: Exchange) -> Any:
    return mapping(mapping(item.sent).get("agent")).get("name")


def _agent(view: AapView, item: Exchange) -> Agent | None:
    return view.agents.get(str(_agent_name(item)))


@rule("AAP-SESS-02", needs="attempt to create a session without a known agent")
def the_agent_must_be_known(view: AapView) -> Found:
    """Without an agent, without its name, or with a name /meta does not list, no session is created."""
    for item in refusable(view.creations):
        if isinstance(item.sent, dict) and view.agents and _agent_name(item) not in view.agents:
            yield item
            told = expect.refused(item.reply, "/meta lists no such agent").json()
            expect.that(isinstance(told, dict) and bool(told), "a JSON object that says so", item.reply.told)


@rule("AAP-SESS-11", needs="attempt to enable a tool that /meta does not declare")
def an_undeclared_tool_cannot_be_enabled(view: AapView) -> Found:
    """A tool name that /meta does not declare is refused."""
    for item in refusable(view.creations):
        agent, asked = _agent(view, item), mapping(mapping(item.sent).get("agent")).get("tools")
        names = {tool.get("name") for tool in mappings(asked)}
        if agent is not None and names - set(agent.tools):
            yield item
            expect.refused(item.reply, "/meta declares no such tool")


@rule("AAP-SESS-03", needs="turn of a session whose creation, and whose agent in /meta, are in the recording")
def only_enabled_tools_are_called(view: AapView) -> Found:
    """Of the tools /meta declares, the agent calls none but those that are enabled."""
    for turn, told in view.told:
        setup, agent = view.setup(turn.session, turn.exchange.order), view.agent_of(turn.session)
        if setup is not None and agent is not None:
            yield turn.exchange
            disabled = set(agent.tools) - set(setup.tools) - setup.client_names
            wrong = [call["name"] for call in told.calls if call["name"] in disabled]
            expect.equal("calls of tools that are not enabled", [], wrong)


@rule("AAP-SESS-12", needs="attempt to set an option, or a value of one, that /meta does not list")
def unknown_options_are_refused(view: AapView) -> Found:
    """An option the agent does not declare, or a select value outside its list, is refused."""
    for item in refusable(view.creations):
        agent, given = _agent(view, item), mapping(mapping(mapping(item.sent).get("agent")).get("options"))
        if agent is None or not given:
            continue
        known = {option["name"]: option for option in agent.options()}
        strange = [name for name in given if name not in known]
        wrong = [name for name in given if name in known and known[name]["type"] == "select"]
        if strange or any(given[name] not in known[name]["options"] for name in wrong):
            yield item
            expect.refused(item.reply, "/meta lists no such option or value")


@rule("AAP-SESS-04", "AAP-SESS-06", needs="session of a known agent with known tools and options, or fewer")
def right_requests_are_taken(view: AapView) -> Found:
    """Options may be left out, and a client tool may be named like a server tool that is not enabled."""
    for item in refusable(view.creations):
        agent, setup = _agent(view, item), Setup("")
        setup.change(mapping(item.sent))
        if agent is not None and not mapping(item.sent).get("messages") and _is_right(agent, setup):
            yield item
            expect.status(item.reply, 201)


def _is_right(agent: Agent, setup: Setup) -> bool:
    """Whether nothing in the request is unknown to /meta or clashes."""
    known = {it["name"]: it for it in agent.options()}
    values = ((known.get(name), value) for name, value in setup.options.items())
    fits = all(it and isinstance(value, str) and value in it.get("options", [value]) for it, value in values)
    names = [*setup.tools, *(str(tool.get("name")) for tool in setup.client_tools)]
    takes_tools = agent.takes_client_tools or not setup.client_tools
    is_sound = all(_is_sound(tool) for tool in setup.client_tools)
    return fits and takes_tools and is_sound and set(setup.tools) <= set(agent.tools) and len(set(names)) == len(names)


def _is_sound(tool: dict[str, Any]) -> bool:
    """Whether a client tool has all it needs, and no number that a server may find too large."""
    is_named = isinstance(tool.get("name"), str) and isinstance(tool.get("description"), str)
    given = tool.get("parameters")
    return is_named and isinstance(given, dict) and is_schema(given) and not has_huge(given)


def _looks(view: AapView) -> Iterator[tuple[Exchange, dict[str, Any], Setup, Agent]]:
    """Every well-formed look at a session whose configuration is known."""
    for item, session in view.shown:
        setup, agent = view.setup(session, item.order), view.agent_of(session)
        is_known = setup is not None and agent is not None and view.quiet(session, item.order, item.ended)
        if item.status == 200 and is_known and setup and agent and not SCHEMAS.problems("session", item.json):
            yield item, item.json, setup, agent


@rule("AAP-SESS-04", needs="look at a session of an agent with options")
def options_have_defaults(view: AapView) -> Found:
    """Options that were never given show their default if they are shown at all."""
    for item, body, setup, agent in _looks(view):
        usual = {it["name"]: it["default"] for it in agent.options() if it["type"] != "secret"}
        shown = mapping(body["agent"].get("options"))
        never = {name: value for name, value in usual.items() if name not in setup.options}
        if never:
            yield item
            wrong = {name: shown[name] for name, value in never.items() if shown.get(name, value) != value}
            expect.equal("shown options that differ from their default", {}, wrong)


@rule("AAP-META-06", needs="attempt to declare a client tool that lacks something")
def a_client_tool_needs_a_schema(view: AapView) -> Found:
    """A client tool without name or description, or whose parameters are no JSON Schema, is refused."""
    for item in refusable(view.creations):
        given = mappings(mapping(item.sent).get("tools"))
        if _agent(view, item) is not None and any(not _is_sound(tool) and not has_huge(tool) for tool in given):
            yield item
            expect.refused(item.reply, "a client tool lacks something")


@rule("AAP-SESS-06", needs="attempt to use one name for two tools")
def tool_names_do_not_clash(view: AapView) -> Found:
    """Two client tools of one name, or a client tool named like an enabled server tool, are refused."""
    for item in refusable(view.creations):
        setup = Setup(str(_agent_name(item)))
        setup.change(mapping(item.sent))
        names = Counter([*setup.tools, *(str(tool.get("name")) for tool in setup.client_tools)])
        if any(count > 1 for count in names.values()):
            yield item
            expect.refused(item.reply, "two tools have one name")


@rule("AAP-SESS-07", needs="look at a session")
def a_session_is_shown(view: AapView) -> Found:
    """GET /sessions/:id gives a session with the id asked for."""
    for item, session in view.shown:
        if item.status == 200:
            yield item
            SCHEMAS.fit("session", item.reply.json(), f"the answer to {item.asked}")
            expect.equal("sessionId", session, item.json["sessionId"])


@rule("AAP-SESS-07", "AAP-TURN-03", needs="look at a session whose creation is in the recording")
def a_session_is_shown_as_configured(view: AapView) -> Found:
    """The agent, the enabled tools, the options and the client tools are those given at creation and in turns."""
    for item, body, setup, agent in _looks(view):
        yield item
        expect.equal("agent.name", setup.agent, body["agent"]["name"])
        trusted = {tool["name"]: tool.get("trust", False) for tool in body["agent"].get("tools", [])}
        expect.equal("the enabled tools and their trust", setup.tools, trusted)
        open_ones = {it["name"] for it in agent.options() if it["type"] != "secret"}
        shown = mapping(body["agent"].get("options"))
        usual = {it["name"]: it["default"] for it in agent.options() if it["name"] not in shown}
        given = {name: it for name, it in setup.options.items() if name in open_ones and usual.get(name) != it}
        expect.equal("the options that were given", given, {name: shown.get(name) for name in given})
        told = [(it["name"], it["description"]) for it in body.get("tools", [])]
        expect.equal("the client tools", [(it.get("name"), it.get("description")) for it in setup.client_tools], told)


@rule("AAP-SESS-08", needs="value of a secret option, and a later look at its session or at the list")
def secrets_stay_secret(view: AapView) -> Found:
    """The value of a secret option comes back neither with its session nor in the list."""
    secrets = _secrets(view)
    for item in [*(item for item, _ in view.shown), *view.lists]:
        known = {secret for secret, order in secrets if order < item.order}
        if known and item.status == 200:
            yield item
            is_hidden = not any(_shows(item.json, secret) for secret in known)
            expect.that(is_hidden, "the value of a secret option not to come back", item.reply.told)


def _shows(value: Any, secret: str) -> bool:
    """Whether the secret is there: as a value, or, if it is long enough not to be there by chance, inside one."""
    if isinstance(value, dict):
        return any(_shows(item, secret) for item in value.values())
    if isinstance(value, list):
        return any(_shows(item, secret) for item in value)
    return value == secret or (isinstance(value, str) and len(secret) >= LONG and secret in value)


def _secrets(view: AapView) -> list[tuple[str, int]]:
    """The values given to secret options, and when."""
    found: dict[str, int] = {}
    names = {it["name"] for agent in view.agents.values() for it in agent.options("secret")}
    for item in [*view.creations, *(turn.exchange for turn in view.turns)]:
        given = mapping(mapping(mapping(item.sent).get("agent")).get("options"))
        for name, value in given.items():
            if name in names and value:
                found.setdefault(str(value), item.order)
    return list(found.items())

"""AAP's bodies: what a client reads of agents and sessions."""

import jsonschema_rs
import orjson
from msgspec.structs import replace

import gateway.model as m
from adapters.aap.server import views
from adapters.aap.wire import NewSession
from gateway.http import dumps
from tests.support.dialect_tables import table
from tests.support.engine.engine_fixture import CARD

AAP = table("aap")


def read(body: object) -> dict:
    """The body as a client reads it."""
    return orjson.loads(dumps(body))


def session(settings: m.Settings, **card: object) -> dict:
    view = m.SessionView(session_id="sess_1", agent="agent", settings=settings)
    return read(views.session_body(AAP, view, replace(CARD, **card)))


def test_meta_tells_what_an_agent_has() -> None:
    card = replace(CARD, title="The agent", version="2.0.1")
    told = read(views.meta_body(AAP, [card]))
    assert told["version"] == 3
    [agent] = told["agents"]
    assert (agent["name"], agent["title"], agent["version"]) == ("agent", "The agent", "2.0.1")
    assert "description" not in agent
    assert agent["tools"][0] == {"name": "clock", "description": "", "parameters": {"type": "object"}}
    assert agent["options"] == [
        {"type": "text", "name": "tone", "default": "plain"},
        {"type": "secret", "name": "api_key", "default": ""},
        {"type": "select", "name": "size", "options": ["small", "large"], "default": "small"},
    ]


def test_meta_tells_how_an_agent_asks_people() -> None:
    [agent] = read(views.meta_body(AAP, [CARD]))["agents"]
    asks = {one["name"]: one for one in agent["asks"]}
    assert list(asks) == ["AskUserQuestion", "confirm_continue", "choose_rollback"]
    for one in asks.values():
        assert one["description"].startswith("A person must ")
        assert NewSession.model_validate({"agent": {"name": "a"}, "tools": [one]}), "a tool like any other"
    assert "JSON object" in asks["AskUserQuestion"]["description"]
    question = m.question_call(
        m.QuestionAsk(questions=(m.Question(question="Which?", options=(m.Choice(label="a"),)),)), "ask_1"
    )
    jsonschema_rs.validate(asks["AskUserQuestion"]["parameters"], question.input)


def test_capabilities_are_empty_objects_and_what_is_missing_is_not_there() -> None:
    told = views.meta_body(AAP, [CARD])["agents"][0]["capabilities"]
    assert told == {
        "history": {"full": {}, "compacted": {}}, "stream": {"delta": {}, "message": {}, "none": {}},
        "application": {"tools": {}}, "turn": {"resume": {}, "interrupt": {}},
        "trust": {"calc": {}, "clock": {}},
    }
    bare = replace(
        CARD, tools=(), capabilities=m.AgentCapabilities(streaming=(), history=(), images=("http",), client_tools=False)
    )
    assert views.meta_body(AAP, [bare])["agents"][0]["capabilities"] == {
        "image": {"http": {}}, "turn": {"resume": {}, "interrupt": {}}}


def test_a_secret_is_masked_even_as_a_default() -> None:
    secret = m.AgentOption(name="api_key", kind=m.OptionKind.SECRET, default="hush")
    assert views.meta_body(AAP, [replace(CARD, options=(secret,))])["agents"][0]["options"][0]["default"] == "***"
    assert session(m.Settings(secrets={"api_key": "hush"}))["agent"]["options"]["api_key"] == "***"
    assert session(m.Settings())["agent"]["options"] == {"tone": "plain", "size": "small", "api_key": ""}


def test_tools_are_told_with_their_trust() -> None:
    tools = {"clock": m.Permission.ALLOW, "calc": m.Permission.ASK}
    told = session(m.Settings(tools=tools, client_tools=(m.ToolSpec(name="mine", description="d"),)))
    assert told["agent"]["tools"] == [{"name": "clock", "trust": True}, {"name": "calc", "trust": False}]
    assert told["tools"] == [{"name": "mine", "description": "d", "parameters": {"type": "object"}}]
    assert "tools" not in session(m.Settings())
    assert session(m.Settings(tools={"clock": m.Permission.DENY}))["agent"]["tools"] == []
    assert len(session(m.Settings())["agent"]["tools"]) == 2, "where nobody said anything, the agent's own are on"

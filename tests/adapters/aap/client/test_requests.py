"""What is said to a server: what our own server's wire takes, and nothing that was not chosen."""

import gateway.model as m
from adapters.aap import wire
from adapters.aap.client.requests import (
    answer_messages,
    changed_settings,
    new_session,
    new_turn,
    settings_to_send,
    turn_messages,
    with_supported_images,
)
from gateway.backends.demo.backend import DEMO_CARD
from gateway.ports.remote import NewRemoteSession, RemoteAsk

LAMP = m.ToolSpec(name="lamp", description="On.", parameters={"type": "object"})
CALL = m.ToolCall(call_id="c1", name="calc")
BLIND = m.AgentCard(name="blind", capabilities=m.AgentCapabilities(images=("data",), client_tools=False))


def test_a_session_as_small_as_it_can_be() -> None:
    body = new_session(DEMO_CARD, NewRemoteSession(settings=m.Settings(tools={})))
    assert body == {"agent": {"name": "demo", "tools": []}}
    wire.NewSession.model_validate(body)


def test_a_session_with_all_there_is() -> None:
    settings = m.Settings(
        tools={
            "calc": m.Permission.ASK,
            "clock": m.Permission.DENY,
            "search": m.Permission.ALLOW,
            "unheard": m.Permission.ASK,
        },
        client_tools=(LAMP,),
        options={"mood": "loud", "greeting": "", "odd": "x"},
        secrets={"api_key": "s3cret"},
        system="Be brief.",
    )
    history = (m.SeedMessage(role=m.Role.USER, content="hi"), m.SeedMessage(role=m.Role.TOOL, content="x", call_id="c"))
    body = new_session(DEMO_CARD, NewRemoteSession(settings=settings, history=history))
    assert body == {
        "agent": {"name": "demo", "tools": [{"name": "calc", "trust": False}, {"name": "search", "trust": True}],
                  "options": {"mood": "loud", "api_key": "s3cret"}},
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"},
                     {"role": "tool", "toolCallId": "c", "content": "x"}],
        "tools": [{"name": "lamp", "description": "On.", "parameters": {"type": "object"}}],
    }
    wire.NewSession.model_validate(body)


def test_an_agent_that_takes_no_tools_of_clients_is_given_none() -> None:
    assert "tools" not in new_session(BLIND, NewRemoteSession(settings=m.Settings(client_tools=(LAMP,))))


def test_only_what_has_changed_is_said_again() -> None:
    before = settings_to_send(DEMO_CARD, m.Settings(tools={"calc": m.Permission.ASK}, options={"mood": "loud"},
                                        secrets={"api_key": "one-secret"}))
    same = settings_to_send(
        DEMO_CARD,
        m.Settings(
            tools={"calc": m.Permission.ASK},
            options={"mood": "loud", "greeting": ""},
            secrets={"api_key": "one-secret"},
        ),
    )
    assert changed_settings(DEMO_CARD, before, same) == {}
    other = settings_to_send(DEMO_CARD, m.Settings(tools={"calc": m.Permission.ALLOW}, client_tools=(LAMP,)))
    said = changed_settings(DEMO_CARD, before, other)
    turn = new_turn(turn_messages(DEMO_CARD, m.SendMessage(content="hi")), "delta", said)
    assert turn["agent"] == {"tools": [{"name": "calc", "trust": True}], "options": {"mood": "plain"}}
    assert [tool["name"] for tool in turn["tools"]] == ["lamp"]
    wire.NewTurn.model_validate(turn)


def test_where_nobody_knows_how_things_were_all_is_said() -> None:
    changes = changed_settings(DEMO_CARD, None, settings_to_send(DEMO_CARD, m.Settings(tools={})))
    assert new_turn([], "none", changes) == {"messages": [], "stream": "none", "agent": {"tools": []}, "tools": []}


def test_settings_are_never_printed() -> None:
    assert "s3cret" not in repr(settings_to_send(DEMO_CARD, m.Settings(secrets={"api_key": "s3cret"})))


def test_answers_are_permissions_or_results() -> None:
    permission = RemoteAsk(ask=m.PermissionAsk(call=CALL), ref="c1")
    said = answer_messages(DEMO_CARD, [
        (permission, m.DecidePermission(request_id="a", granted=False, reason="no")),
        (permission, m.DecidePermission(request_id="a", granted=True)),
        (RemoteAsk(ask=m.ContinuationAsk(turn=1, message="?"), ref="a2"), m.ContinueTurn(request_id="a")),
    ])
    assert said == [
        {"role": "tool_permission", "toolCallId": "c1", "granted": False, "reason": "no"},
        {"role": "tool_permission", "toolCallId": "c1", "granted": True},
        {"role": "tool", "toolCallId": "a2", "content": "yes"},
    ]
    wire.NewTurn.model_validate(new_turn(said, "delta", {}))


def test_pictures_that_are_not_taken_are_words() -> None:
    far, near = m.ImagePart(url="https://example.test/a.png"), m.ImagePart(url="data:image/png;base64,AA==")
    assert with_supported_images(BLIND, (far, near, m.TextPart(text="x"))) == (
        m.TextPart(text="![image](https://example.test/a.png)"), near, m.TextPart(text="x"))
    assert with_supported_images(DEMO_CARD, (far, near)) == (far, near)
    assert with_supported_images(DEMO_CARD, (m.ImagePart(url="http://example.test/a.png"),)) == (
        m.TextPart(text="![image](http://example.test/a.png)"),)
    [told] = turn_messages(DEMO_CARD, m.SendMessage(content=(m.FilePart(name="a.txt"),)))
    assert told["content"] == [{"type": "text", "text": "a.txt"}]


def test_results_of_the_first_messages_are_sent_as_results() -> None:
    result = m.SeedMessage(role=m.Role.TOOL, content="sunny", call_id="call_1")
    command = m.SendMessage(content="weather returned sunny", results=(result,))
    assert turn_messages(DEMO_CARD, command) == [{"role": "tool", "toolCallId": "call_1", "content": "sunny"}]

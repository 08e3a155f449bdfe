"""Laws that hold whatever is typed to the demo agent and however it is answered."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gateway.model as m
from gateway.backends.demo.directive_parser import ARGUMENT_PARSERS, parse_message
from tests.support.backends.turn_driver import FakeTurn, tell

ARGUMENTS = {
    "tool": st.sampled_from(("", "clock", "calc", "search", "pick", "zither", 'calc {"expression": "1/0"}')),
    "client-tool": st.sampled_from(("", '{"n": 1}')),
    "slow": st.sampled_from(("", "0", "2")),
    "burst": st.sampled_from(("", "0", "7")),
    "title": st.sampled_from(("A name\n", "")),
}
ENDLESS = {"fail", "fail-start"}


@st.composite
def messages(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(sorted(set(ARGUMENT_PARSERS) - ENDLESS)), max_size=5))
    pieces = [f"/{name} {draw(ARGUMENTS.get(name, st.just('')))} {draw(st.sampled_from(('', 'word', 'a b')))}"
              for name in names]
    return " ".join([draw(st.text("ab \n/{", max_size=10)), *pieces])


@st.composite
def answers(draw: st.DrawFn, ask: m.AnyAsk, request_id: str) -> m.Answer:
    if draw(st.integers(0, 4)) == 0:
        return m.Withdraw(request_id=request_id)
    words = draw(st.sampled_from(("", "so be it")))
    match ask:
        case m.QuestionAsk():
            picks = st.dictionaries(st.sampled_from("012x"), st.lists(st.integers(-1, 4), max_size=3).map(tuple))
            return m.AnswerQuestion(request_id=request_id, selections=draw(picks), custom={"1": words}, message=words)
        case m.PermissionAsk():
            return m.DecidePermission(request_id=request_id, granted=draw(st.booleans()), reason=words or None)
        case m.ClientToolAsk():
            return m.ReturnResult(request_id=request_id, content=words, is_error=draw(st.booleans()))
        case m.ContinuationAsk():
            return m.ContinueTurn(request_id=request_id, proceed=draw(st.booleans()))
    return m.RollBack(request_id=request_id, option=words or None)


NAMES = ("clock", "calc", "search", "pick", "other")
PERMISSIONS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(m.Permission))
CHOICES = st.builds(
    m.Settings,
    tools=st.none() | PERMISSIONS,
    client_tools=st.sampled_from(((), (m.ToolSpec(name="pick"),), (m.ToolSpec(name="a"), m.ToolSpec(name="pick")))),
    options=st.sampled_from(({}, {"greeting": "Well,"}, {"mood": "loud"})),
)


def _texts(turn: FakeTurn) -> dict[str, list[str]]:
    said: dict[str, list[str]] = {}
    for event in turn.all(m.BlockDelta):
        said.setdefault(event.block_id, []).append(event.delta)
    return said


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), messages(), CHOICES, st.sampled_from((None, {"type": "object"})))
async def test_any_talk_is_grammatical_and_ends_well(
    data: st.DataObject, message: str, chosen: m.Settings, schema: dict[str, Any] | None,
) -> None:
    turn = await tell(  # checks every event against the grammar, and that the turn can end
        m.SendMessage(content=message, output_schema=schema), settings=chosen,
        answering=lambda ask, request_id: data.draw(answers(ask, request_id)),
    )
    deltas, ended = _texts(turn), turn.all(m.BlockEnded)
    assert all("".join(deltas.get(event.block_id, [])) == event.text for event in ended if event.text is not None)
    calls = [event.call.call_id for event in ended if event.call]
    assert sorted(calls) == sorted(event.call_id for event in turn.all(m.ToolReturned))
    ids = [event.block_id for event in ended]
    assert len(set(ids)) == len(ids)
    assert all(record.scope_id == m.ROOT or record.scope_id.startswith("scope_") for record in turn.records)


@settings(deadline=None)
@given(messages())
async def test_the_same_message_gets_the_same_answer(message: str) -> None:
    assert (await tell(message)).records == (await tell(message)).records


@settings(deadline=None)
@given(st.text("ab c\nd", min_size=1).filter(str.strip))
async def test_plain_words_come_back_as_they_were(message: str) -> None:
    assert (await tell(message)).text == f"You said: {parse_message(message).text}"

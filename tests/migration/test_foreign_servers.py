"""An import from servers that share no code with the gateway: those of the examiners, made from the documents alone."""

import pytest
from yarl import URL

import gateway.model as m
from conformance.faults.local_server import served
from gateway.backends.remote import open_remote
from gateway.migration import Destination, Origin, make_records
from gateway.ports import NewRemoteSession, RemoteAddress, Timeouts
from tests.support.conformance.examinations import KEY, SERVERS
from tests.support.dialect_parts import each
from tests.support.dialect_tables import dialect

SAID = ("hello there", "and once more")


@pytest.mark.parametrize("name", each("read_back", of=SERVERS))
async def test_conversations_of_the_examiners_server(name: str) -> None:
    spoken = dialect(name)
    assert spoken.past_sessions is not None
    async with served(SERVERS[name]()) as address_there:
        url = str(URL(address_there).with_path(spoken.mount))
        address = RemoteAddress(url=url, key=KEY, patience=Timeouts(attempts=1))
        remote = open_remote(name, address)
        session_id = await remote.open(NewRemoteSession())
        answers = []
        for text in SAID:
            turn = remote.start_turn(session_id, m.SendMessage(content=text), m.Settings())
            words = [item.delta async for item in turn if isinstance(item, m.BlockDelta)]
            answers.append("".join(words))
        await remote.close()
        source = spoken.past_sessions(address, "")
        listed, _ = await source.page(None)
        assert session_id in [one.session_id for one in listed]
        past = await source.read(session_id)
        await source.close()
    records = make_records(past, Origin(dialect=name, url=url), Destination(agent="demo"), 4e9)
    entries = m.fold(session_id, records).entries
    assert [m.text_of(m.parts_of(one.content)) for one in entries if one.role is m.Role.USER] == list(SAID)
    assert [m.text_of(m.parts_of(one.content)) for one in entries if one.role is m.Role.ASSISTANT] == answers
    assert all(answers)

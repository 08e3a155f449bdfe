"""Every address that a client named is found in the records of a session, and nothing that an agent said."""

from typing import Any

import gateway.model as m
from gateway.resources.session_archive import addresses_in

SETTINGS = m.Settings(mcp_servers=({"name": "m", "url": "u:mcp"}, {"name": "c", "command": "x"}))


def said(*parts: Any) -> m.InputAccepted:
    results = (m.SeedMessage(role=m.Role.TOOL, content=(m.ImagePart(url="u:result"),)),)
    return m.InputAccepted(command_id="c", command=m.SendMessage(content=parts, results=results))


def test_every_address_of_a_client_is_found() -> None:
    seed = m.SeedMessage(role=m.Role.USER, content=(m.ImagePart(url="u:seed"),))
    events = [
        m.SessionCreated(agent="a", settings=SETTINGS, history=(seed,)),
        m.SessionUpdated(settings=SETTINGS),
        m.InputAccepted(command_id="c", command=m.Configure(settings=SETTINGS)),
        said(m.ImagePart(url="u:image"), m.FilePart(name="f", url="u:file"), m.FilePart(name="g", file_id="file_1")),
        m.InputAccepted(
            command_id="c", command=m.ReturnResult(request_id="r", content=(m.ImagePart(url="u:returned"),))
        ),
        m.ToolReturned(call_id="c", content=(m.ImagePart(url="u:agent"),), meta={"ui": {"resourceUri": "u:card"}}),
        m.SessionUpdated(title="t"),
        m.ToolReturned(call_id="c", meta={"ui": 5}),
    ]
    records = [m.Record(seq=seq, at=0.0, session_id="s", event=event) for seq, event in enumerate(events, 1)]
    found = list(addresses_in(records))
    assert [url for _, url in found] == [
        "u:mcp", "u:seed", "u:mcp", "u:mcp", "u:image", "u:file", "u:result", "u:returned", "u:card"]
    assert found[0][0] == "record 1: mcp_servers.0.url"

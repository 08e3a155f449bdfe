"""Every address that a client named is found in the records of a session, and nothing that an agent said."""

from typing import Any

from gateway.model import (
    Configure,
    FilePart,
    ImagePart,
    InputAccepted,
    Record,
    ReturnResult,
    Role,
    SeedMessage,
    SendMessage,
    SessionCreated,
    SessionUpdated,
    Settings,
    ToolReturned,
)
from gateway.resources.session_archive import addresses_in

SETTINGS = Settings(mcp_servers=({"name": "m", "url": "u:mcp"}, {"name": "c", "command": "x"}))


def said(*parts: Any) -> InputAccepted:
    results = (SeedMessage(role=Role.TOOL, content=(ImagePart(url="u:result"),)),)
    return InputAccepted(command_id="c", command=SendMessage(content=parts, results=results))


def test_every_address_of_a_client_is_found() -> None:
    seed = SeedMessage(role=Role.USER, content=(ImagePart(url="u:seed"),))
    events = [
        SessionCreated(agent="a", settings=SETTINGS, history=(seed,)), SessionUpdated(settings=SETTINGS),
        InputAccepted(command_id="c", command=Configure(settings=SETTINGS)),
        said(ImagePart(url="u:image"), FilePart(name="f", url="u:file"), FilePart(name="g", file_id="file_1")),
        InputAccepted(command_id="c", command=ReturnResult(request_id="r", content=(ImagePart(url="u:returned"),))),
        ToolReturned(call_id="c", content=(ImagePart(url="u:agent"),), meta={"ui": {"resourceUri": "u:card"}}),
        SessionUpdated(title="t"), ToolReturned(call_id="c", meta={"ui": 5}),
    ]
    records = [Record(seq=seq, at=0.0, session_id="s", event=event) for seq, event in enumerate(events, 1)]
    found = list(addresses_in(records))
    assert [url for _, url in found] == [
        "u:mcp", "u:seed", "u:mcp", "u:mcp", "u:image", "u:file", "u:result", "u:returned", "u:card"]
    assert found[0][0] == "record 1: mcp_servers.0.url"

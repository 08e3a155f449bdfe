"""What a CAS client that watches a whole session gets of it."""

from gateway.ports import Frame
from tests.support.dialects.cas.reader import read_stream
from tests.support.frames import bodies


def spoken(frames: list[Frame]) -> tuple[str, list[str]]:
    """The words of the agent, and the names of the tools it used."""
    heard = read_stream(b"".join(bodies(frames)))
    words = "".join(frame.text for frame in heard if frame.type == "agent.message")
    return (words, [frame.body["name"] for frame in heard if frame.type.endswith("tool_use")])

"""What a ZenFlux client that watches a whole session gets of it."""

from gateway.ports import Frame
from tests.support.dialects.zenflux.reader import payloads, read_stream
from tests.support.frames import bodies


def spoken(frames: list[Frame]) -> tuple[str, list[str]]:
    """The words of the agent, and the names of the tools it used."""
    runs = read_stream(payloads(bodies(frames)))
    calls = [block["name"] for run in runs for block in run.blocks if block["type"].endswith("tool_use")]
    return ("".join(word for run in runs for word in run.words("text")), calls)

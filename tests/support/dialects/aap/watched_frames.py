"""What a AAP client that watches a whole session gets of it."""

import re

from gateway.ports import Frame
from tests.support.dialects.aap.reader import read_stream
from tests.support.frames import bodies


def spoken(frames: list[Frame]) -> tuple[str, list[str]]:
    """AAP's streams belong to requests: each is from a turn_start to its turn_stop, and between them nobody listens."""
    streams = re.findall(rb"event: turn_start\n.*?event: turn_stop\n[^\n]*\n\n", b"".join(bodies(frames)), re.DOTALL)
    turns = read_stream(b"".join(streams))
    return ("".join(turn.text for turn in turns), [name for turn in turns for _, name, _ in turn.calls])

"""The options of one AAP stream: how much a client gets at once, and whether it can resume."""

from typing import Literal

from gateway import ports

StreamMode = Literal["delta", "message", "none"]


class StreamOptions(ports.StreamOptions, frozen=True):
    """One of AAP's stream modes, and whether each event has an id to resume after."""

    mode: StreamMode = "delta"
    has_ids: bool = False

"""Ports for servers that die and come back: not among those the system hands out to whoever connects somewhere."""

import random
import socket
from collections import deque

LOWEST, HIGHEST = 20_000, 32_000
GIVEN = deque[int](maxlen=1000)
"""The last ports that were given: their servers may not be there yet."""


def free_port() -> int:
    """A port that nobody listens on, and that no connection takes by chance before its server is there."""
    chance = random.SystemRandom()
    while True:
        port = chance.randrange(LOWEST, HIGHEST)
        if port in GIVEN:
            continue
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            GIVEN.append(port)
            return port

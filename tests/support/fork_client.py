"""Asks the fork server of `warm_process.py` for a process; as a program, it stands for `python` in a shell.

It imports next to nothing, so that a line of a shell costs next to nothing.
"""

import json
import os
import socket
import sys
from collections.abc import Sequence

LONGEST = 1 << 20
"""Bytes of a command with its environment."""


def ask(address: bytes, files: Sequence[int], **command: object) -> socket.socket:
    """A connection on which the number of the process comes, and its exit code when it has ended."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
    line.connect(address)
    socket.send_fds(line, [json.dumps(command).encode()], files)
    return line


if __name__ == "__main__":
    _, name, *words = sys.argv
    with ask(
        b"\0" + name.encode(), (0, 1, 2), args=[sys.executable, *words], cwd=os.getcwd(), env=dict(os.environ),  # noqa: PTH109
        is_new_session=False,
    ) as started:
        started.recv(32)
        sys.exit(int(started.recv(32) or 255))

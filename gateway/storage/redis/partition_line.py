"""Sends the commands of one partition to the node of a Redis Cluster that has its slot, and follows the slot."""

import asyncio
from collections.abc import Sequence

from .address import Place
from .connection import Command, CommandRefused, RedisUnreachable, set_synced, unreachable_error
from .nodes import ClusterNode, ClusterNodes
from .replies import Reply

REDIRECTIONS = ("MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN")
"""The node has not done what it was asked for, because it has not the slot, or not all of it."""
NAMES_A_NODE = ("MOVED", "ASK")
REDIRECT_SECONDS = 0.02
"""After how long a command is sent again that was refused because its slot moves, or has no primary."""
ASKING: Command = ("ASKING",)


class PartitionLine:
    """One partition's way to Redis: to one of the two connections of the node that has its slot.

    A command that was refused because its slot is elsewhere is sent again: nothing of it was done.
    """

    def __init__(self, nodes: ClusterNodes, slot: int, prefix: str, *, writes: bool) -> None:
        self._nodes, self._slot, self._writes = nodes, slot, writes
        self._synced = set_synced(prefix)

    async def ask(self, *command: str | bytes | int | float) -> Reply:
        [reply] = await self.ask_all([command])
        if isinstance(reply, CommandRefused):
            raise reply
        return reply

    async def ask_all(self, commands: Sequence[Command]) -> list[Reply]:
        return await self._follow(commands, synced=False)

    async def ask_synced(self, commands: Sequence[Command]) -> list[Reply]:
        if not self._nodes.address.wait:
            return await self._follow(commands, synced=True)
        replies = await self._follow([*commands, self._synced], synced=True)
        return replies if isinstance(replies[-1], CommandRefused) else replies[:-1]

    async def close(self) -> None:
        """The connections are the nodes'."""

    async def _follow(self, commands: Sequence[Command], *, synced: bool) -> list[Reply]:
        loop = asyncio.get_running_loop()
        until, replies = loop.time() + self._nodes.seconds, list[Reply]([None] * len(commands))
        left, first = list(range(len(commands))), None
        while True:
            told = await self._send([commands[at] for at in left], first, synced=synced)
            for at, reply in zip(left, told, strict=True):
                replies[at] = reply
            left = [at for at in left if is_redirection(replies[at])]
            if not left:
                return replies
            first = replies[left[0]]
            if loop.time() > until:
                error = unreachable_error(self._nodes.address.shown, f"slot {self._slot} is not served ({first})")
                error.was_sent = len(left) < len(commands)
                raise error
            if first.kind != "ASK":
                self._nodes.refresh_soon()
            if first.kind not in NAMES_A_NODE:
                await asyncio.sleep(REDIRECT_SECONDS)

    async def _send(
        self, commands: list[Command], redirection: CommandRefused | None, *, synced: bool,
    ) -> list[Reply]:
        """Send commands where the slot is, or where a redirection says."""
        node = await self._nodes.primary_of(self._slot)
        if redirection is not None and redirection.kind in NAMES_A_NODE:
            node = self._nodes.node(named_place(redirection, node.place))
        if redirection is not None and redirection.kind == "ASK":
            asking = [word for command in commands for word in (ASKING, command)]
            return (await self._exchange(node, asking, synced=synced))[1::2]
        return await self._exchange(node, commands, synced=synced)

    async def _exchange(self, node: ClusterNode, commands: list[Command], *, synced: bool) -> list[Reply]:
        line = node.writing if self._writes else node.reading
        try:
            return await (line.ask_synced(commands) if synced else line.connection.ask_all(commands))
        except RedisUnreachable:
            self._nodes.refresh_soon()
            raise


def is_redirection(reply: Reply) -> bool:
    return isinstance(reply, CommandRefused) and reply.kind in REDIRECTIONS


def named_place(redirection: CommandRefused, asked: Place) -> Place:
    """The node that `MOVED SLOT HOST:PORT` names; without a host, it is another port of the node that was asked."""
    host, _, port = str(redirection).rpartition(" ")[2].rpartition(":")
    return host or asked[0], int(port)

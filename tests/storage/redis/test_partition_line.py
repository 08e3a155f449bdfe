"""Commands of a partition follow its slot: over redirections, while it moves, and never twice."""

from collections.abc import Sequence

import pytest

from gateway.storage.redis import Command, CommandRefused, RedisAddress, RedisUnreachable, Reply
from gateway.storage.redis.nodes import ClusterNodes, read_slots
from gateway.storage.redis.partition_line import PartitionLine

INFO = b"cluster_state:ok\r\ncluster_current_epoch:%d\r\n"


def slots(*primaries: tuple[int, int, str]) -> list[list[object]]:
    """The reply to CLUSTER SLOTS, with a replica for each primary."""
    return [[first, last, [b"10.0.0.1", 7000 + ord(name), name.encode(), []], [b"10.0.0.2", 7000, b"r", []]]
            for first, last, name in primaries]


class Node:
    """A node that answers what it is told to, and remembers what it was asked."""

    def __init__(self, name: str, log: list[tuple[str, Command]], replies: dict[str, list[Reply]]) -> None:
        self.name, self._log, self._replies = name, log, replies
        self.place = "10.0.0.1", 7000 + ord(name)
        self.writing = self.reading = self.connection = self

    async def ask_all(self, commands: Sequence[Command]) -> list[Reply]:
        replies = []
        for command in commands:
            self._log.append((self.name, command))
            waiting = self._replies.get(f"{self.name} {command[0]}", [])
            replies.append(waiting.pop(0) if waiting else f"{self.name} did {command[0]}")
        return replies

    ask_synced = ask_all


def line(replies: dict[str, list[Reply]]) -> tuple[PartitionLine, list[tuple[str, Command]]]:
    """A line to a slot that node `a` has; node `b` is there, too."""
    nodes = ClusterNodes(RedisAddress.read("redis+cluster://10.0.0.1"), 1.0)
    nodes.slots = read_slots(INFO % 3, slots((0, 8191, "a"), (8192, 16383, "b")), ("10.0.0.1", 7000))
    log: list[tuple[str, Command]] = []
    for name in "ab":
        node = Node(name, log, replies)
        nodes._nodes[node.place] = node  # type: ignore[assignment]
    nodes.refresh_soon = lambda: log.append(("refresh", ()))  # type: ignore[method-assign]
    return PartitionLine(nodes, 7, "p:", writes=True), log


def moved(name: str) -> CommandRefused:
    return CommandRefused("MOVED", f"7 10.0.0.1:{7000 + ord(name)}")


async def test_a_command_goes_where_its_slot_has_moved_and_only_there() -> None:
    one, log = line({"a GET": [moved("b")]})
    assert await one.ask_all([("SET", "x"), ("GET", "y")]) == ["a did SET", "b did GET"]
    assert log == [("a", ("SET", "x")), ("a", ("GET", "y")), ("refresh", ()), ("b", ("GET", "y"))]


async def test_a_node_that_gets_a_slot_is_asked_for_its_permission() -> None:
    one, log = line({"a GET": [CommandRefused("ASK", f"7 10.0.0.1:{7000 + ord('b')}")]})
    assert await one.ask("GET", "y") == "b did GET"
    assert log == [("a", ("GET", "y")), ("b", ("ASKING",)), ("b", ("GET", "y"))]


async def test_a_command_waits_while_its_slot_is_in_pieces() -> None:
    one, log = line({"a EVALSHA": [CommandRefused("TRYAGAIN", "later")] * 3})
    assert await one.ask("EVALSHA", "x") == "a did EVALSHA"
    assert [entry for entry in log if entry[0] == "a"] == [("a", ("EVALSHA", "x"))] * 4


async def test_a_slot_that_is_not_served_for_long_cannot_be_reached() -> None:
    one, _ = line({"a GET": [CommandRefused("CLUSTERDOWN", "The cluster is down")] * 1000})
    with pytest.raises(RedisUnreachable, match=r"slot 7 is not served.*CLUSTERDOWN") as told:
        await one.ask("GET", "y")
    assert not told.value.was_sent


async def test_what_was_done_before_a_slot_went_away_is_not_denied() -> None:
    one, _ = line({"a GET": [CommandRefused("CLUSTERDOWN", "The cluster is down")] * 1000})
    with pytest.raises(RedisUnreachable) as told:
        await one.ask_all([("SET", "x"), ("GET", "y")])
    assert told.value.was_sent


def test_of_several_views_the_latest_of_a_whole_cluster_counts() -> None:
    views = [read_slots(INFO % 3, slots((0, 16383, "a")), ("h", 1)),
             read_slots(INFO % 5, slots((0, 16383, "b")), ("h", 1)),
             read_slots(b"cluster_state:fail\r\ncluster_current_epoch:9", slots((0, 16383, "c")), ("h", 1))]
    latest = max(views, key=lambda one: one.epoch)
    primary = latest.primary_of(7)
    assert primary is not None and primary.id == "b"
    assert latest.places == (("10.0.0.1", 7098), ("10.0.0.2", 7000))


def test_a_node_without_a_name_is_where_it_was_asked() -> None:
    view = read_slots(INFO % 1, [[0, 16383, [None, 7001, b"a", []]]], ("10.9.9.9", 7001))
    assert view.places == (("10.9.9.9", 7001),)

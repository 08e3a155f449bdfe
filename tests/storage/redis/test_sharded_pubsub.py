"""Channels of a cluster are heard at the node that has their slot, and follow the slot when it moves."""

from dataclasses import replace

from gateway.storage.redis import RedisAddress
from gateway.storage.redis.nodes import ClusterNodes, Primary
from gateway.storage.redis.partitions import slot_of_key
from gateway.storage.redis.sharded_pubsub import ShardedPubSub
from tests.support.cluster.receiver import Receiver
from tests.support.gateway_server import simulation, until
from tests.support.redis_server import cluster_url


async def test_a_channel_follows_its_slot_and_says_that_messages_may_be_missed() -> None:
    """One node is known by two addresses here, and the slots move from one to the other."""
    nodes, receiver = ClusterNodes(RedisAddress.read(cluster_url("moved")), 5.0), Receiver()
    pubsub = ShardedPubSub(nodes, slot_of_key, simulation().time)
    await pubsub.start(receiver, "{a}one", "{b}two")
    assert nodes.slots is not None
    [(first, last, primary)] = nodes.slots.ranges
    moved = Primary("another", ("localhost", primary.place[1]))
    node = nodes.node(primary.place).writing.connection
    before = nodes.slots
    nodes.slots = replace(before, ranges=((first, last, moved),))
    for listener in nodes._listeners:
        listener(before, nodes.slots)
    await until(lambda: bool(receiver.missed_at) and [*pubsub._lines] == [moved.place])
    assert await node.ask_all([("SPUBLISH", "{a}one", "1"), ("SPUBLISH", "{b}two", "2")]) == [1, 1]
    await until(lambda: len(receiver.messages) == 2)
    pubsub.ignore("{a}one")
    await until(lambda: not pubsub.is_subscribed("{a}one"))
    await pubsub.close()
    await nodes.close()

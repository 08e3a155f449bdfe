"""One Redis server that many of ours share."""

from .address import RedisAddress, RedisUnreachable
from .client import DEFAULT_LEASE_SECONDS, RedisClient, RedisDataLost, RedisTokenBuckets
from .connection import Command, CommandRefused, RedisConnection
from .pubsub import PubSubReceiver, RedisPubSub

__all__ = [
    "DEFAULT_LEASE_SECONDS",
    "Command",
    "CommandRefused",
    "PubSubReceiver",
    "RedisAddress",
    "RedisClient",
    "RedisConnection",
    "RedisDataLost",
    "RedisPubSub",
    "RedisTokenBuckets",
    "RedisUnreachable",
]

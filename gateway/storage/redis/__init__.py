"""The connection to a Redis server that several gateways share."""

from .address import RedisAddress
from .client import DEFAULT_LEASE_SECONDS, RedisClient, RedisDataLost, RedisTokenBuckets
from .connection import Command, CommandRefused, RedisConnection, RedisFull, RedisUnreachable
from .owner_traces import RedisOwnerTraces
from .pubsub import PubSubReceiver, RedisPubSub
from .replies import (
    Appended,
    OwnerUsage,
    Reply,
    read_appended,
    read_claim,
    read_removed,
    read_renewal,
    read_session_ids,
)

__all__ = [
    "DEFAULT_LEASE_SECONDS",
    "Appended",
    "Command",
    "CommandRefused",
    "OwnerUsage",
    "PubSubReceiver",
    "RedisAddress",
    "RedisClient",
    "RedisConnection",
    "RedisDataLost",
    "RedisFull",
    "RedisOwnerTraces",
    "RedisPubSub",
    "RedisTokenBuckets",
    "RedisUnreachable",
    "Reply",
    "read_appended",
    "read_claim",
    "read_removed",
    "read_renewal",
    "read_session_ids",
]

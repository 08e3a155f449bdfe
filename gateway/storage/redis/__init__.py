"""The connection to a Redis server that several gateways share."""

from .address import RedisAddress
from .client import DEFAULT_LEASE_SECONDS, RedisClient, RedisDataLost
from .connection import Command, CommandRefused, RedisConnection, RedisFull, RedisUnreachable
from .owner_traces import RedisOwnerTraces
from .partitions import RedisPartitions
from .pubsub import PubSub, PubSubReceiver, RedisPubSub
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
from .shared import SharedRedis
from .store_move import StoreCounts, StoreMove
from .token_buckets import RedisTokenBuckets

__all__ = [
    "DEFAULT_LEASE_SECONDS",
    "Appended",
    "Command",
    "CommandRefused",
    "OwnerUsage",
    "PubSub",
    "PubSubReceiver",
    "RedisAddress",
    "RedisClient",
    "RedisConnection",
    "RedisDataLost",
    "RedisFull",
    "RedisOwnerTraces",
    "RedisPartitions",
    "RedisPubSub",
    "RedisTokenBuckets",
    "RedisUnreachable",
    "Reply",
    "SharedRedis",
    "StoreCounts",
    "StoreMove",
    "read_appended",
    "read_claim",
    "read_removed",
    "read_renewal",
    "read_session_ids",
]

"""The live end of one session: its latest records, the channels that project them, and the readers that wait."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import gateway.model as m
from gateway.ports import StreamKey

from .channel import Channel, ChannelReader

WINDOW = 2048
"""How many records are kept ready for those who read along."""


class Feed:
    """What all subscribers of one session share, whatever their dialect."""

    def __init__(self, session_id: str, head: int) -> None:
        self.session_id = session_id
        self.head = head
        self.over = False
        self.end: m.Record | None = None
        """The record that closed the session."""
        self.is_cut = False
        """Whether this server cannot follow the session any more: its subscribers are cut, and may come again."""
        self.records: list[m.Record] = []
        self.channels: dict[StreamKey, Channel] = {}
        self.subscribers = 0
        self.watchers: Counter[str] = Counter()
        """How many subscribers there are of each dialect."""
        self.waiters: dict[asyncio.Future[None], None] = {}

    def publish(self, records: Sequence[m.Record]) -> None:
        self.records.extend(records)
        self.head = records[-1].seq
        self.over = type(records[-1].event) is m.SessionClosed
        self.end = records[-1] if self.over else None
        keep = max(WINDOW, len(records))  # records that come at once are read at once, however many they are
        if len(self.records) > 2 * keep:
            del self.records[:-keep]
        if self.waiters:
            self.wake()

    def wake(self) -> None:
        waiters, self.waiters = self.waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def since(self, seq: int) -> Sequence[m.Record] | None:
        """The records after that one; None if the window does not have all of them any more."""
        start = len(self.records) - (self.head - seq)
        return None if start < 0 else self.records[start:]

    # -- channels -------------------------------------------------------------------------------------------------

    def join(self, key: StreamKey, seq: int, own: Channel | None) -> Channel | None:
        """The channel that a reader of the records up to `seq` may share; None if it has to read the log first.

        Where no channel is at the live end, the reader's own becomes the shared one.
        """
        if seq < self.head:
            return None
        channel = self.channels.get(key)
        if channel is not None and (records := self.since(channel.seq)) is not None:
            channel.feed(records)
            return channel
        if own is not None:  # there is no channel, or none of its readers has read for too long
            self.channels[key] = own
        return own

    def leave(self, key: StreamKey, channel: Channel, reader: ChannelReader) -> None:
        """Forget the reader, and the channel with its last reader."""
        channel.readers.discard(reader)
        if not channel.readers and self.channels.get(key) is channel:
            del self.channels[key]


def wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)

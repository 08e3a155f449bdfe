"""What a chat ends with, for those who do not listen while it lasts."""

from typing import Any

import orjson

from gateway.ports import Place, Receipt
from gateway.time_slices import turn
from gateway.web import Context, parted

from .outbound import BARE

LARGE = 256 * 1024
"""An end of more bytes than that is read in a turn of its own."""


async def ending(house: Context, owner: str, session_id: str, receipt: Receipt, place: Place) -> Any:
    """The payload of the `chat:end` that the commands of a receipt lead to."""
    if not receipt.begun:  # an answer was accepted, and others are awaited: its chat is over already
        told = house.sessions.read(owner, session_id, house.dialect, BARE, after=receipt.after)
        with house.taken():
            return _payload([frame async for chunk in told for frame in chunk.frames][-1])
    async with house.following(owner, session_id, receipt, BARE, place) as subscription:
        while chunks := await subscription.chunks():
            for chunk in chunks:
                if chunk.yields:
                    if len(chunk.frames[-1]) > LARGE:
                        await turn()
                    return _payload(chunk.frames[-1])
        raise house.broken_off(session_id, subscription)


def _payload(frame: bytes) -> Any:
    return orjson.loads(parted(frame)[1])

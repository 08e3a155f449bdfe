"""The rest of a turn, for one who has had its first frames."""

from collections.abc import Sequence

from msgspec.structs import replace

from gateway.ports import Chunk, Subscription


class Rest:
    """A subscription that keeps to itself the frames its reader has had; the turn is made anew from its start."""

    def __init__(self, subscription: Subscription, had: int) -> None:
        self._subscription = subscription
        self._had = had

    @property
    def cut_at(self) -> int | None:
        return self._subscription.cut_at

    @property
    def leaving(self) -> bool:
        return self._subscription.leaving

    async def chunks(self) -> Sequence[Chunk]:
        while chunks := await self._subscription.chunks():
            if not self._had:
                return chunks
            if left := [chunk for chunk in map(self._left, chunks) if chunk.frames or chunk.yields]:
                return left
        return ()

    def _left(self, chunk: Chunk) -> Chunk:
        had = min(self._had, len(chunk.frames))
        self._had -= had
        return replace(chunk, frames=chunk.frames[had:]) if had else chunk

    def cut(self) -> None:
        self._subscription.cut()

    def close(self) -> None:
        self._subscription.close()

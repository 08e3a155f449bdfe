"""The reader for a protocol that shows nothing of a user beside sessions."""

from collections.abc import AsyncIterator, Mapping

from gateway.errors import NotFound
from gateway.ports import PastResource, ResourceGroup


class NoPastResources:
    """See `PastResources`; `unseen` says why there is nothing to read."""

    def __init__(self, unseen: Mapping[ResourceGroup, str]) -> None:
        self.unseen = unseen

    async def read(self, group: ResourceGroup) -> AsyncIterator[PastResource]:
        nothing: tuple[PastResource, ...] = ()
        for one in nothing:
            yield one

    async def content(self, file_id: str) -> AsyncIterator[bytes]:
        raise NotFound(f"there is no file '{file_id}'")
        yield b""

    async def close(self) -> None:
        """Nothing is open."""

"""The bytes of a stored file, whole."""

from gateway.ports import FileContent


async def whole(file: FileContent) -> bytes:
    return b"".join([chunk async for chunk in file.read(0, file.size)])

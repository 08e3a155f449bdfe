"""A session's working folder: files that an agent reads and writes through the gateway stay inside, despite links."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from gateway.errors import Forbidden, Invalid, NotFound, TooLarge
from gateway.private_files import make_private_folder

MAX_FILE_BYTES = 10 * 1024 * 1024
"""A larger file is neither read nor written."""


class SessionFolder:
    """Files below one folder, by absolute paths; every refusal is a `GatewayError`."""

    def __init__(self, path: Path) -> None:
        make_private_folder(path)
        self.path = path.resolve()

    def read(self, path: str, line: int | None = None, limit: int | None = None) -> str:
        """The text of a file, optionally from a line on (the first is 1) and with a limited number of lines."""
        with self._opened(path, os.O_RDONLY) as file:
            if os.fstat(file).st_size > MAX_FILE_BYTES:
                raise TooLarge(f"{path} has more than {MAX_FILE_BYTES} bytes")
            with os.fdopen(os.dup(file), "rb") as stream:
                content = stream.read(MAX_FILE_BYTES)
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise Invalid(f"{path} is no text") from None
        if line is None and limit is None:
            return text
        first = max(0, (line or 1) - 1)
        return "".join(islice(text.splitlines(keepends=True), first, None if limit is None else first + max(0, limit)))

    def write(self, path: str, content: str | bytes) -> Path:
        """Replace or create a file; returns its path."""
        content = content.encode() if isinstance(content, str) else content
        if len(content) > MAX_FILE_BYTES:
            raise TooLarge(f"{path} would have more than {MAX_FILE_BYTES} bytes")
        with self._opened(path, os.O_WRONLY | os.O_CREAT, make=True) as file:
            os.ftruncate(file, 0)
            with os.fdopen(os.dup(file), "wb") as stream:
                stream.write(content)
        return self._inside(path)

    def _inside(self, path: str) -> Path:
        """The target of a path after its links; raises if it is outside."""
        if "\0" in path:
            raise Invalid("a path has no zero bytes")
        try:
            found = (self.path / path).resolve()
        except (OSError, RuntimeError):  # links that form a circle
            raise Forbidden(f"{path} leads nowhere") from None
        if found == self.path or not found.is_relative_to(self.path):
            raise Forbidden(f"{path} is outside the session's folder")
        return found

    @contextmanager
    def _opened(self, path: str, flags: int, *, make: bool = False) -> Iterator[int]:
        """Open the file folder by folder without following links, so that a concurrent change cannot lead outside."""
        *folders, name = self._inside(path).relative_to(self.path).parts
        with _naming_os_errors(path):
            at = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            for folder in folders:
                at = _enter_folder(at, folder, make)
            try:
                file = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=at)
            finally:
                os.close(at)
            try:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise Invalid(f"{path} is no file")
                yield file
            finally:
                os.close(file)


def _enter_folder(at: int, folder: str, make: bool) -> int:
    """Open a folder inside another one, which is closed."""
    try:
        if make:
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700, dir_fd=at)
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
    finally:
        os.close(at)


@contextmanager
def _naming_os_errors(path: str) -> Iterator[None]:
    """Turn errors of the operating system into a `GatewayError`."""
    try:
        yield
    except FileNotFoundError:
        raise NotFound(f"{path} does not exist") from None
    except OSError as error:
        raise Forbidden(f"{path}: {error.strerror}") from None

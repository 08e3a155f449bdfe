"""Content that CAS blocks have been read as: which files count, and what a file without a name is called."""

from collections.abc import Sequence

from msgspec.structs import replace

import gateway.model as m

DOCUMENT = "document"
"""The name of a file that has neither a name nor an id."""


def with_named_files(content: Sequence[m.AnyPart]) -> tuple[m.AnyPart, ...]:
    """The parts; files that are nowhere are left out, and files without a name are called by their id."""
    return tuple(_named(part) if isinstance(part, m.FilePart) else part for part in content
                 if not isinstance(part, m.FilePart) or part.url or part.file_id)


def _named(file: m.FilePart) -> m.FilePart:
    return file if file.name else replace(file, name=file.file_id or DOCUMENT)

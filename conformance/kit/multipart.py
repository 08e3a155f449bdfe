"""Forms with files, as browsers send them: fields in, one multipart/form-data body out."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4


@dataclass(frozen=True)
class Upload:
    """A file in a form."""

    name: str
    content: bytes
    content_type: str = "application/octet-stream"


@dataclass(frozen=True)
class Form:
    """A body and the content type that goes with it."""

    body: bytes
    content_type: str


def form(fields: Mapping[str, str | Upload]) -> Form:
    """The fields in the order given."""
    mark = f"examiners-{uuid4().hex}"
    parts = [b"--%s\r\n%s\r\n" % (mark.encode(), _part(name, value)) for name, value in fields.items()]
    return Form(b"".join([*parts, b"--%s--\r\n" % mark.encode()]), f"multipart/form-data; boundary={mark}")


def _part(name: str, value: str | Upload) -> bytes:
    told = f'Content-Disposition: form-data; name="{_quoted(name)}"'
    if isinstance(value, str):
        return f"{told}\r\n\r\n{value}".encode()
    head = f'{told}; filename="{_quoted(value.name)}"\r\nContent-Type: {value.content_type}\r\n\r\n'
    return head.encode() + value.content


def _quoted(text: str) -> str:
    """Names as the HTML standard escapes them."""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")

"""Quill servers with one fault each."""

from typing import Any

from conformance.faults.quill.server import QuillServer

from conformance.faults.fault import fault


@fault("QUILL-TALK-01", cases="talks.a_talk_is_begun")
class CreatedWith200(QuillServer):
    """A new talk is answered with 200."""

    created = 200


@fault("QUILL-LINE-01", cases="lines.a_line_is_answered")
class NeverClosed(QuillServer):
    """A stream ends without its last event."""

    def frame(self, name: str, body: Any) -> bytes:
        return b"" if name == "closed" else super().frame(name, body)

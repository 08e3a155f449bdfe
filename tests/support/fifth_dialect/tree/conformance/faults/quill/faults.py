"""Quill servers with one fault each."""

from typing import Any

from conformance.faults.quill.server import QuillServer

from conformance.faults.fault import Fault


class CreatedWith200(QuillServer):
    """A new talk is answered with 200."""

    created = 200


class NeverClosed(QuillServer):
    """A stream ends without its last event."""

    def frame(self, name: str, body: Any) -> bytes:
        return b"" if name == "closed" else super().frame(name, body)


FAULTS = {fault.name: fault for fault in (
    Fault("created-with-200", "A new talk is answered with 200.", ("QUILL-TALK-01",), ("talks.a_talk_is_begun",),
          CreatedWith200),
    Fault("never-closed", "A stream ends without its last event.", ("QUILL-LINE-01",), ("lines.a_line_is_answered",),
          NeverClosed),
)}

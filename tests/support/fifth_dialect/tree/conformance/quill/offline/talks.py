"""Section talks: how the talks of a recording began."""

from collections.abc import Iterator

from conformance.quill.talks import is_begun

from conformance.offline.recording import Exchange, Recording
from conformance.offline.rule import rule


@rule("QUILL-TALK-01", needs="answer to POST /talks")
def a_talk_is_begun(recording: Recording) -> Iterator[Exchange | str]:
    """Every new talk has an id."""
    for item in recording.exchanges:
        if item.method == "POST" and item.path == "/talks" and item.status != 401:
            yield item
            is_begun(item.reply)

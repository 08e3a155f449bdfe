"""Section talks: how the talks of a recording began."""

from collections.abc import Iterator

from conformance.quill.talks import is_begun

from conformance.offline.rule import rule
from conformance.offline.tape import Exchange, Tape


@rule("QUILL-TALK-01", needs="answer to POST /talks")
def a_talk_is_begun(tape: Tape) -> Iterator[Exchange | str]:
    """Every new talk has an id."""
    for item in tape.exchanges:
        if item.method == "POST" and item.path == "/talks" and item.status != 401:
            yield item
            is_begun(item.reply)

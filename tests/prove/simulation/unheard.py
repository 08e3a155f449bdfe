"""Whether all who listened have heard what was stored: a stream that falls silent is in order, and still wrong."""

from collections.abc import Collection, Mapping, Sequence

from tests.prove.crash.expected_streams import expected_stream
from tests.prove.crash.history import NOW, ConnectionHistory, History, Kind, Violation

STREAMS = ("blade", "cas")
"""Those that go on from turn to turn."""


def of_open_streams(
    hearings: Sequence[ConnectionHistory], heads: Mapping[str, int], history: History, cut_off: Collection[str],
) -> list[Violation]:
    """What was not heard on connections that were open when everything had been mended for long.

    `heads` says for each session that had rested for as long how many records it had; `cut_off` are the clients whose
    connections are dead, and who have not noticed yet.
    """
    return [
        Violation(Kind.GAP, one.session, f"{one.client} ({one.stream}) listens, and was never told {last!r}")
        for one in hearings
        if one.stream in STREAMS and one.session in heads and one.client not in cut_off
        if (last := _last_thing(one, heads[one.session], history)) is not None
        and last not in one.heard and last != one.after
    ]


def _last_thing(hearing: ConnectionHistory, head: int, history: History) -> str | None:
    """What a reader of the first `head` records hears last; None where that cannot be said."""
    if hearing.after == NOW and not hearing.heard:
        return None
    told = expected_stream(history.logs.get(hearing.session, ())[:head], hearing.stream)
    return told[-1] if told and told[-1] in history.tellings[hearing.session, hearing.stream] else None

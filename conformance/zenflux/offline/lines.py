"""Section connection: ticks, pongs, lines that last, and deltas that are throttled."""

import math
from collections.abc import Iterator
from itertools import pairwise

from conformance.kit import expect
from conformance.offline.recording import Exchange
from conformance.offline.rule import rule
from conformance.zenflux.connection import GRACE, THROTTLE
from conformance.zenflux.examination import SCHEMAS
from conformance.zenflux.offline.view import ZenfluxView, heard

Found = Iterator[Exchange | str]
EVERY = 30.0


@rule("ZF-WS-17", needs="tick")
def ticks_have_their_form(view: ZenfluxView) -> Found:
    """A tick is {type event, event tick, payload {ts}, seq 0}."""
    for _, said in view.lines:
        for it in heard(said, "event"):
            if (it.body or {}).get("event") == "tick":
                yield it.frame.place
                SCHEMAS.fit("tick", it.body, "a tick")


@rule("ZF-WS-18", needs="line that was open for a tick")
def ticks_come(view: ZenfluxView) -> Found:
    """There are never more than 30 s (and a moment) without a tick."""
    for item, said in view.lines:
        ticks = [it.frame.at for it in heard(said, "event") if (it.body or {}).get("event") == "tick"]
        times = [item.at, *ticks, *(it.frame.at for it in said[-1:])]
        longest = max((after - before for before, after in pairwise(times)), default=0.0)
        if ticks or longest > EVERY + GRACE:
            yield item
            expect.that(longest <= EVERY * 1.1 + GRACE, f"a tick every {EVERY:g} s", f"none in {longest:.1f} s")


@rule("ZF-WS-21", needs="ping")
def a_ping_is_answered(view: ZenfluxView) -> Found:
    """Every ping is answered with one pong, whose time does not go back."""
    for item, said in view.lines:
        pings = [it for it in said if it.frame.is_sent and it.kind == "ping"]
        pongs = heard(said, "pong")
        if pings or pongs:
            yield item
            expect.that(len(pongs) <= len(pings), "a pong for a ping", f"{len(pongs)} for {len(pings)}")
            late = [it for it in said if not it.frame.is_sent and it.frame.at > pings[-1].frame.at + GRACE]
            expect.that(len(pongs) == len(pings) or not late, "a pong for every ping", f"{len(pongs)} of {len(pings)}")
            times = [(it.body or {}).get("ts", 0) for it in pongs]
            expect.that(times == sorted(times), "the time of a pong not to go back", times)


@rule("ZF-WS-22", needs="line with several chats")
def a_line_serves_many_chats(view: ZenfluxView) -> Found:
    """Chats follow each other on one connection, each under a session of its own."""
    for item, _ in view.lines:
        runs = [spoken.run.session_id for spoken in view.spoken if spoken.exchange is item and spoken.run.events]
        if len(runs) > 1:
            yield item
            expect.equal("a session per run", len(runs), len(set(runs)))


@rule("ZF-WS-24", needs="run on a socket")
def deltas_are_throttled(view: ZenfluxView) -> Found:
    """No block comes in more deltas than one per 150 ms, and one at each end; the time is taken generously."""
    for spoken in view.over:
        if not spoken.run.is_socket or spoken.exchange.place.startswith("entry"):
            continue
        yield spoken.exchange
        most = 1 + math.ceil((spoken.times[-1] - spoken.times[0]) / THROTTLE) + 1
        for block in spoken.run.blocks("text", "thinking"):
            expect.that(len(block.deltas) <= most, f"at most {most} deltas in a block", len(block.deltas))

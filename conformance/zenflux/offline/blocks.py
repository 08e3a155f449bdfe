"""Section blocks: content_start, content_delta and content_stop, and what blocks add up to."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping
from conformance.offline.rule import Rule, rule
from conformance.zenflux import blocks
from conformance.zenflux.examination import SCHEMAS
from conformance.zenflux.offline.view import ZenfluxView, hold_event
from conformance.zenflux.run import TOOL_USES
from conformance.zenflux.sample_runs import texts

Found = Iterator[Exchange | str]
KINDS = {
    "text": "ZF-EV-25",
    "thinking": "ZF-EV-26",
    "tool_use": "ZF-EV-27",
    "tool_result": "ZF-EV-28",
    "server_tool_use": "ZF-EV-29",
}


def _start(kind: str, requirement: str) -> Rule:
    def check(view: ZenfluxView) -> Found:
        for place, payload in view.of("content_start"):
            block: Any = mapping(payload.get("data")).get("content_block")
            if isinstance(block, dict) and block.get("type") == kind:
                yield place
                hold_event(payload)
                if kind in ("text", "thinking"):
                    expect.equal(f"the {kind} at the start", "", block.get(kind))

    check.__name__ = f"a_{kind}_block_begins_rightly"
    check.__doc__ = f"content_start of a {kind} block has its members."
    return rule(requirement, needs=f"{kind} block")(check)


STARTS = tuple(_start(kind, requirement) for kind, requirement in KINDS.items() if kind != "server_tool_use")


@rule("ZF-EV-29", needs="tool_use or server_tool_use block")
def server_calls_are_like_calls(view: ZenfluxView) -> Found:
    """A server_tool_use block, wherever one is sent, begins like a tool_use block."""
    for place, payload in view.of("content_start"):
        block: Any = mapping(payload.get("data")).get("content_block")
        if isinstance(block, dict) and block.get("type") in TOOL_USES:
            yield place
            expect.subset("the block", ["id", "name", "input"], block)


@rule("ZF-EV-24", "ZF-EV-34", needs="run that is over")
def blocks_open_and_close_by_index(view: ZenfluxView) -> Found:
    """Each content_stop has the index of the block it closes, and every block is closed."""
    for spoken in view.completed:
        yield spoken.exchange
        blocks.closes_what_it_opens(spoken.run)


@rule("ZF-EV-30", "ZF-EV-31", needs="run with text")
def deltas_are_of_known_blocks(view: ZenfluxView) -> Found:
    """Each content_delta has the index of a block that began."""
    for spoken in view.over:
        if spoken.run.of("content_delta"):
            yield spoken.exchange
            blocks.has_known_deltas(spoken.run)


@rule("ZF-EV-27", needs="tool_use block")
def calls_have_ids_of_their_own(view: ZenfluxView) -> Found:
    """No two calls of different runs have one id."""
    seen: set[str] = set()
    for spoken in view.over:
        for block in spoken.run.blocks(*TOOL_USES):
            yield spoken.exchange
            expect.that(block.start["id"] not in seen, "an id for each call", block.start["id"])
            seen.add(block.start["id"])


@rule("ZF-EV-28", needs="tool_result block")
def a_result_names_its_call(view: ZenfluxView) -> Found:
    """A tool_result block has the id of a call of its run as tool_use_id, after that call."""
    for spoken in view.over:
        known: set[str] = set()
        for block in spoken.run.blocks():
            if block.type in TOOL_USES:
                known.add(block.start["id"])
            elif block.type == "tool_result":
                yield spoken.exchange
                expect.member("tool_use_id", known, block.start["tool_use_id"])


@rule("ZF-EV-33", needs="tool_use block that was closed")
def the_deltas_of_a_call_form_json(view: ZenfluxView) -> Found:
    """When a tool_use is closed its deltas add up to its input, a JSON object."""
    for spoken in view.completed:
        for block in spoken.run.blocks(*TOOL_USES):
            yield spoken.exchange
            expect.that(isinstance(block.input, dict), "an object as the input of the call", block.said)


@rule("G-ZF-16", needs="run with the messages of its conversation after it")
def throttling_loses_nothing(view: ZenfluxView) -> Found:
    """What the deltas add up to is what the conversation keeps."""
    runs = Counter(it.run.conversation_id for it in view.spoken if it.run.events)
    for spoken in view.completed:
        name = spoken.run.conversation_id
        kept = view.history(name, spoken.orders[-1]) if runs[name] == 1 else None
        if kept is None or any(SCHEMAS.problems("message", item) for item in kept):
            continue
        if [item["role"] for item in kept].count("user") == 1:
            yield spoken.exchange
            expect.equal("the text, as the conversation keeps it", texts(kept), spoken.run.text)

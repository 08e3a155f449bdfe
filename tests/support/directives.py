"""What tests say to the demo agent: every directive, so that every situation comes about in every dialect."""

from collections.abc import Collection


def directives(*, burst: int = 200, without: Collection[str] = ()) -> list[str]:
    """Messages with every directive but those named; a burst has so many deltas."""
    return [text for text in (
        "hello there", "/think why", "/tool clock", '/tool calc {"expression": "6*7"} well',
        '/tool search {"query": "dragoman"}', '/tool search {"wrong": 1}', "/permit", "/parallel", "/ask", "/fork",
        "/fork-ask", "/continue", "/rollback", "/fail", "/fail-start", "/refuse", "/max-tokens", "/max-steps",
        "/slow 3", f"/burst {burst}", "/annotate", "/bridge", "/ui", "/image", "/plan", "/card", "/title Trip",
        "/compact", "/json", "/client-tool", "/provider-tool",
    ) if text not in without]


REFUSED = ["/permit", "/parallel", "/continue"]
"""What the agent asks for here, the client does not grant."""
STOPPED = "/slow 60"
"""What the client stops before its end."""

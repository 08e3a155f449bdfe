"""ZenFlux judged from recordings: frames, runs and wrapped answers."""

from conformance.offline.rule import Offline

ACTING = {
    "ZF-WS-08": "which agents there are is not told on the wire",
    "ZF-WS-09": "it takes the same message with and without streaming",
    "G-ZF-17": "it takes the same message on the socket and over POST /chat",
    "G-ZF-20": "it takes one request in both spellings",
    "ZF-TYPE-02": "it takes files in every form of reference",
    "ZF-TYPE-07": "it takes a request with every member",
    "G-ZF-32": "it takes uploads without a user, without content and with odd names",
    "G-ZF-34": "it takes requests with and without a key",
}


def offline() -> Offline:
    """Everything needed to judge recordings of ZenFlux."""
    from conformance.offline.rule import collect
    from conformance.zenflux.offline import blocks, events, frames, lines, messages, resources, rest, runs
    from conformance.zenflux.offline.view import ZenfluxView

    return Offline(
        view=ZenfluxView,
        rules=collect((frames, lines, runs, events, messages, blocks, rest, resources)),
        acting=ACTING,
        mount=r"(.*?)(?:/api/v1/(?!cloud)|/health(?:/|$))",
    )

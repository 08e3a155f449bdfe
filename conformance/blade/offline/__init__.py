"""Blade judged from recordings: packets of Socket.IO, the chats in them, and the REST answers beside them."""

from conformance.offline.rule import Offline

ACTING = {
    "BL-REST-13": "an archive has to be carried from one address to another",
    "BL-REST-14": "what becomes of files is seen only by writing and reading them",
    "BL-FLOW-16": "whether words of one's own were understood is seen only by asking on purpose",
}


def offline() -> Offline:
    """Everything needed to judge recordings of Blade."""
    from conformance.blade.offline import asks, chats, flow, gaps, parts, resources, rest, sessions, socket, turns
    from conformance.blade.offline.view import BladeView
    from conformance.offline.rule import collect

    return Offline(
        view=BladeView,
        rules=collect((sessions, turns, parts, flow, chats, asks, socket, rest, resources, gaps)),
        acting=ACTING,
        mount=r"(.*?)(?:/api/(?!v1/)|/socket\.io/|/healthz$)",
    )

"""AAP judged from recordings: almost every requirement leaves traces that a recording can hold."""

from conformance.offline.rule import Offline


def offline() -> Offline:
    """Everything needed to judge recordings of AAP."""
    from conformance.aap.offline import history, listing, meta, sessions, streaming, tools, turns
    from conformance.aap.offline.view import AapView
    from conformance.offline.rule import collect

    return Offline(
        view=AapView,
        rules=collect((meta, sessions, listing, history, turns, streaming, tools)),
        acting={"AAP-HIST-06": "few clients create a session from a history that ends with an open call"},
        mount=r"(.*?)/(?:meta|sessions(?:/[^/]+(?:/turns|/history)?)?)/?$",
    )

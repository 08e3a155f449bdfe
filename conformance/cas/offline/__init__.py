"""CAS judged from recordings: streams, lists and answers held against each other."""

from conformance.offline.rule import Offline


def offline() -> Offline:
    """Everything needed to judge recordings of CAS."""
    from conformance.cas.offline import (
        conventions,
        events,
        lists,
        resources,
        session_changes,
        sessions,
        shapes,
        stream,
        threads,
        turns,
    )
    from conformance.cas.offline.view import CasView
    from conformance.offline.rule import collect

    return Offline(
        view=CasView,
        rules=collect(
            (shapes, conventions, lists, sessions, session_changes, events, turns, stream, threads, resources)
        ),
        acting={},
        mount=r"(.*?)/(?:v1/)?(?:sessions|agents|environments|files|models|vaults|memory_stores)(?:/|$)",
    )

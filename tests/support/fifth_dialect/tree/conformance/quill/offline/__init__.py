"""Quill judged from recordings."""

from conformance.offline.rule import Offline


def offline() -> Offline:
    """Everything needed to judge recordings of Quill."""
    from conformance.quill.offline import talks

    from conformance.offline.rule import collect

    return Offline(
        view=lambda recording: recording,
        rules=collect((talks,)),
        acting={"QUILL-LINE-01": "No rule reads streams yet; put the case to a server."},
        mount=r"(.*?)/talks(?:/[^/]+(?:/lines)?)?/?$",
    )

"""Quill: its requirements, its cases and its default profile."""

from pathlib import Path

from conformance.kit.suite import Probe, Suite

HERE = Path(__file__).parent


def suite() -> Suite:
    """Everything needed to examine a Quill server."""
    from conformance.quill import lines, talks
    from conformance.quill.examination import QuillProfile, opening

    from conformance.kit.case import collect
    from conformance.kit.requirement import read_catalogue

    return Suite(
        catalogue=read_catalogue(HERE / "requirements.yaml"),
        cases=collect((talks, lines)),
        profile_model=QuillProfile,
        default_profile=HERE / "profile.yaml",
        opening=opening,
        probes=(Probe("/talks", lambda reply: reply.has("talks")),),
        usual_path="/quill",
    )

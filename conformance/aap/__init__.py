"""AAP, the Agent Application Protocol (version 3): its requirements, its cases and its default profile."""

import re
from pathlib import Path

from conformance.kit.suite import Probe, Suite

HERE = Path(__file__).parent


def suite() -> Suite:
    """Everything needed to examine an AAP server."""
    from conformance.aap import errors, history, listing, meta, modes, sessions, streaming, tools, turns
    from conformance.aap.examination import opening
    from conformance.aap.profile import AapProfile
    from conformance.kit.case import collect
    from conformance.kit.requirement import read_catalogue

    return Suite(
        catalogue=read_catalogue(HERE / "requirements.yaml"),
        cases=collect((meta, sessions, listing, history, turns, streaming, modes, tools, errors)),
        profile_model=AapProfile,
        default_profile=HERE / "profile.yaml",
        opening=opening,
        probes=(
            Probe("/meta", lambda reply: reply.has("version", "agents")),
            Probe("/sessions", lambda reply: reply.has("sessions")),
        ),
        usual_path="/aap",
        turn=re.compile(r"\APOST \S*/turns\b"),
    )

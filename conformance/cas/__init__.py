"""CAS, the session and event API of Qoder Cloud Agents: its requirements, its cases and its default profile."""

import re
from pathlib import Path

from conformance.kit.http import Reply
from conformance.kit.suite import Probe, Suite

HERE = Path(__file__).parent


def suite() -> Suite:
    """Everything needed to examine a CAS server."""
    from conformance.cas import (
        agents,
        asks,
        conventions,
        deltas,
        events,
        idempotency,
        listing,
        mounts,
        resources,
        sessions,
        snapshots,
        stream,
        stream_contents,
        stream_resumption,
        threads,
        turns,
        variables,
    )
    from conformance.cas.examination import opening
    from conformance.cas.profile import CasProfile
    from conformance.kit.case import collect
    from conformance.kit.requirement import read_catalogue

    general = (conventions, listing, idempotency)
    about_sessions = (sessions, snapshots, variables, mounts)
    about_events = (events, turns, asks, stream, stream_contents, stream_resumption, deltas)
    return Suite(
        catalogue=read_catalogue(HERE / "requirements.yaml"),
        cases=collect((*general, *about_sessions, *about_events, threads, agents, resources)),
        profile_model=CasProfile,
        default_profile=HERE / "profile.yaml",
        opening=opening,
        probes=tuple(Probe(path, _is_list) for path in ("/models", "/sessions", "/agents")),
        usual_path="/api/v1/cloud",
        turn=re.compile(r'\APOST \S*/events\b[^\0]*"user\.'),
    )


def _is_list(reply: Reply) -> bool:
    """ZenFlux has a member `data`, too, and a `code` beside it."""
    return reply.has("data", "has_more") and not reply.has("code")

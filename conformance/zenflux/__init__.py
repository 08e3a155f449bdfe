"""ZenFlux, req/res/event frames over WebSocket and REST with SSE: its requirements, cases and default profile."""

import re
from pathlib import Path

from conformance.kit.suite import Probe, Suite

HERE = Path(__file__).parent


def suite() -> Suite:
    """Everything needed to examine a ZenFlux server."""
    from conformance.kit.case import collect
    from conformance.kit.requirement import read_catalogue
    from conformance.zenflux import (
        agent_servers,
        agents,
        blocks,
        chat,
        confirmations,
        connection,
        conversations,
        documents,
        envelope,
        events,
        extras,
        files,
        frames,
        health,
        lifecycle,
        management,
        mcp_servers,
        memories,
        messages,
        models,
        paging,
        responses,
        sessions,
        settings,
        skill_details,
        skills,
        tasks,
        tools,
        types,
    )
    from conformance.zenflux.examination import opening
    from conformance.zenflux.prerequisites import guarded
    from conformance.zenflux.profile import ZenfluxProfile

    on_the_socket = (frames, responses, connection, envelope, lifecycle, events, messages, blocks, extras, types)
    over_http = (chat, sessions, conversations, paging, confirmations, files, models, health)
    managed = (agents, agent_servers, skills, skill_details, tools, mcp_servers, settings, memories, tasks, documents)
    return Suite(
        catalogue=read_catalogue(HERE / "requirements.yaml"),
        cases=guarded(collect((*on_the_socket, *over_http, *managed, management))),
        profile_model=ZenfluxProfile,
        default_profile=HERE / "profile.yaml",
        opening=opening,
        probes=(
            Probe("/api/v1/sessions", lambda reply: reply.has("code", "data")),
            Probe("/api/v1/conversations", lambda reply: reply.has("code", "data"), {"user_id": "examiner"}),
        ),
        own_path="/api/v1",
        usual_path="/api/v1",
        turn=re.compile(r'\APOST \S*/chat(\s|\Z)|"method":"chat\.send"'),
    )

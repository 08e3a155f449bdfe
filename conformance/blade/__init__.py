"""Blade, chat over Socket.IO and REST: its requirements, its cases and its default profile."""

import re
from pathlib import Path

from conformance.kit.suite import Probe, Suite

HERE = Path(__file__).parent
ENGINE = {"EIO": "4", "transport": "polling"}


def suite() -> Suite:
    """Everything needed to examine a Blade server."""
    from conformance.blade import (
        ask,
        block,
        bridge,
        flow,
        fork,
        gap,
        general,
        headless,
        key,
        memory,
        meta,
        patch,
        rest,
        rest_more,
        rest_session,
        session,
        socket,
        stop,
        task,
        tool_call,
        turn,
    )
    from conformance.blade.examination import opening
    from conformance.blade.profile import BladeProfile
    from conformance.kit.case import collect
    from conformance.kit.requirement import read_catalogue

    types = (general, session, turn, block, tool_call, patch, memory, key, task, meta)
    flows = (flow, ask, fork, headless, socket, stop, rest, rest_session, rest_more, bridge, gap)
    return Suite(
        catalogue=read_catalogue(HERE / "requirements.yaml"),
        cases=collect((*types, *flows)),
        profile_model=BladeProfile,
        default_profile=HERE / "profile.yaml",
        opening=opening,
        probes=(
            Probe("/socket.io/", lambda reply: reply.text.startswith("0{"), ENGINE, needs_key=False),
            Probe("/api/sessions", lambda reply: reply.has("items")),
        ),
        own_path="/api",
        usual_path="/api",
        turn=re.compile(r'"chat:send"|\APOST \S*/(chat|start)(\s|\Z)'),
    )

"""The answers of every route, and every event by its type: their status and their fields."""

from collections.abc import Iterator

from conformance.cas.offline.view import CasView, schema_of
from conformance.cas.requirement_owners import SCHEMAS
from conformance.offline.recording import Exchange
from conformance.offline.rule import Rule, rule
from conformance.offline.shape_rules import shaped

ROUTES = shaped(
    SCHEMAS,
    """
    POST   /sessions                           201     session             CAS-SESS-01,CAS-SESS-02,CAS-SESS-04
    GET    /sessions/{}                        200     session             CAS-SESS-02,CAS-SESS-03,CAS-GEN-06
    GET    /sessions                           200     sessions            CAS-SESS-02,CAS-SESS-10,CAS-GEN-04
    POST   /sessions/{}                        200     session             CAS-SESS-02,CAS-SESS-11
    POST   /sessions/{}/archive                200     session             CAS-SESS-02,CAS-SESS-12
    DELETE /sessions/{}                        200     deleted             CAS-SESS-12
    POST   /sessions/{}/cancel                 200,202 canceling           CAS-SESS-13
    POST   /sessions/{}/resources              200,201 resource            CAS-SESS-14
    GET    /sessions/{}/resources              200     resources           CAS-SESS-14
    GET    /sessions/{}/resources/{}           200     resource            CAS-SESS-14
    POST   /sessions/{}/events                 202     accepted            CAS-EV-02
    GET    /sessions/{}/events                 200     page                CAS-EV-11,CAS-GEN-04
    GET    /sessions/{}/threads                200     threads             CAS-THR-01,CAS-THR-02
    GET    /sessions/{}/threads/{}             200     thread              CAS-THR-01,CAS-THR-02
    POST   /sessions/{}/threads/{}/archive     200     thread              CAS-THR-02
    POST   /agents                             200,201 agent               CAS-RES-01,CAS-GEN-06
    GET    /agents                             200     agents              CAS-RES-01
    GET    /agents/{}                          200     agent               CAS-RES-01
    POST   /agents/{}                          200     agent               CAS-RES-02
    POST   /agents/{}/archive                  200     agent               CAS-RES-03
    POST   /environments                       200,201 environment         CAS-RES-05,CAS-GEN-06
    GET    /environments                       200     environments        CAS-RES-05
    GET    /environments/{}                    200     environment         CAS-RES-05
    DELETE /environments/{}                    200     environment_deleted CAS-RES-05
    POST   /files                              200,201 file                CAS-RES-06,CAS-GEN-06
    GET    /files                              200     files               CAS-RES-06
    GET    /files/{}                           200     file                CAS-RES-06
    GET    /files/{}/content                   200     file_content        CAS-RES-06
    GET    /models                             200     models              CAS-RES-07
    POST   /vaults                             200,201 vault               CAS-RES-08
    GET    /vaults/{}                          200     vault               CAS-RES-08
    POST   /vaults/{}/credentials              200,201 credential          CAS-RES-08
    POST   /memory_stores                      200,201 memory_store        CAS-RES-09
    GET    /memory_stores/{}                   200     memory_store        CAS-RES-09
    POST   /memory_stores/{}/memories          200,201 memory              CAS-RES-09
    GET    /memory_stores/{}/memories/{}       200     memory              CAS-RES-09
    """,
)
KINDS = {
    "CAS-EV-13": ("session.status_idle",),
    "CAS-EV-14": (
        "agent.message", "agent.thinking", "agent.tool_use", "agent.tool_result", "agent.mcp_tool_use",
        "agent.mcp_tool_result", "agent.custom_tool_use",
    ),
    "CAS-EV-17": ("span.model_request_start", "span.model_request_end"),
    "CAS-EV-18": ("session.error",),
    "CAS-EV-19": ("session.deleted", "session.updated", "session.status_terminated", "agent.artifact_delivered"),
    "CAS-SSE-08": ("event_start", "event_delta"),
    "CAS-SSE-09": (
        "agent.message_start", "agent.content_block_start", "agent.content_block_delta", "agent.content_block_stop",
        "agent.message_delta", "agent.message_stop",
    ),
    "CAS-THR-03": (
        "session.thread_created", "session.thread_status_running", "session.thread_status_idle",
        "session.thread_status_terminated", "agent.thread_message_sent", "agent.thread_message_received",
    ),
}  # fmt: skip


def _events(requirement: str, kinds: tuple[str, ...]) -> Rule:
    def check(view: CasView) -> Iterator[Exchange | str]:
        for place, event in view.every_event:
            if event.get("type") in kinds:
                yield place
                SCHEMAS.fit(schema_of(event), event, f"the event {event['type']}")

    check.__name__ = f"events_of_{requirement.lower().replace('-', '_')}_fit"
    check.__doc__ = f"{', '.join(kinds)}: streamed, listed or accepted, each has its fields."
    return rule(requirement, needs=f"event {' or '.join(kinds)}")(check)


EVENTS = tuple(_events(requirement, kinds) for requirement, kinds in KINDS.items())

"""ZenFlux judged from recordings: frames, runs and wrapped answers."""

from conformance.offline.rule import Offline

ACTING = {
    "ZF-WS-08": "which agents there are is not told on the wire",
    "ZF-WS-25": "which agents there are is not told on the wire",
    "ZF-WS-09": "it takes the same message with and without streaming",
    "G-ZF-17": "it takes the same message on the socket and over POST /chat",
    "G-ZF-20": "it takes one request in both spellings",
    "ZF-TYPE-02": "it takes files in every form of reference",
    "ZF-TYPE-07": "it takes a request with every member",
    "G-ZF-32": "it takes uploads without a user, without content and with odd names",
    "G-ZF-34": "it takes requests with and without a key",
}
MANAGED = {
    "it takes calls that are alike but for what they ask for": "AG-02.in AG-04.in MCP-05.in MCP-07.in MCP-09.in "
    "TL-01.in TL-03.in TL-07.in MG-08 MG-09 "
    "SK-07.in SK-08.in SK-09.in SET-02.in MEM-01.in MEM-02.in TASK-01.in TASK-03.in",
    "it takes a call for what is not there, is not allowed or makes no sense": "AG-01.err AG-02.err AG-03.err "
    "AG-04.err AG-05.err AG-07.err AG-09.err AG-10.err MCP-01.err MCP-02.err MCP-03.err MCP-04.err MCP-05.err "
    "MCP-06.err MCP-08.err MCP-09.err MCP-10.err TL-01.err TL-02.err TL-03.err TL-04.err TL-05.err TL-06.err "
    "DOC-02.err MG-01 MG-04 MG-05 MG-07 MG-11 MG-14 "
    "SK-02.err SK-03.err SK-04.err SK-05.err SK-06.err SK-07.err SK-08.err SK-09.err SET-02.err "
    "MEM-01.err MEM-02.err MEM-03.err MEM-04.err MEM-05.err TASK-02.err TASK-03.err TASK-04.err",
    "it takes a look at what came of a call": "AG-02.does AG-05.does AG-11.out MCP-03.does MCP-04.does MCP-06.does "
    "MCP-10.does TL-05.does MG-02 MG-03 MG-06 MG-12 MG-13 "
    "SK-03.out SK-03.does SK-04.out SK-05.out SK-05.does SK-06.out SK-06.does SK-08.out SK-09.out SET-01.does "
    "SET-02.out MEM-03.does MEM-05.out MEM-06.out MEM-06.does",
}
ACTING |= {f"ZF-{name}": reason for reason, names in MANAGED.items() for name in names.split()}


def offline() -> Offline:
    """Everything needed to judge recordings of ZenFlux."""
    from conformance.offline.rule import collect
    from conformance.zenflux.offline import blocks, events, frames, lines, messages, resources, rest, runs
    from conformance.zenflux.offline.view import ZenfluxView

    return Offline(
        view=ZenfluxView,
        rules=collect((frames, lines, runs, events, messages, blocks, rest, resources)),
        acting=ACTING,
        mount=r"(.*?)(?:/api/v1/(?!cloud)|/health(?:/|$))",
    )

"""Section management: what holds for all of it, and the calls of it that have no section of their own."""

import re

from conformance.kit import expect
from conformance.kit.case import Case, requirement
from conformance.zenflux import agents, mcp_servers, tools
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import allowed, call, manage, offered, own_name, refused
from conformance.zenflux.rest_answer import listed, wrapped
from conformance.zenflux.rest_calls import BASE

NOT_IMPLEMENTED = 501


def _voice(name: str, method: str, path: str) -> Case:
    """A case that calls an endpoint of the voice protocol, which a server need not have."""

    async def check(exam: ZenfluxExamination) -> None:
        place = path.replace("{id}", own_name())
        allowed(exam)
        answer = wrapped(await exam.http.ask(method, BASE + place), exam.schemas)
        is_right = answer.is_done or answer.code in (404, NOT_IMPLEMENTED)
        expect.that(is_right, f"{method} {place} to succeed or to be 404 or 501", answer.reply.told)

    words = "_".join(re.findall(r"\w+", f"{method.lower()} {path}"))
    return Case(f"management.{words}", (name,), f"{method} {path} answers in the wrapper; 501 is allowed.", check)


VOICE_CASES: tuple[Case, ...] = (
    _voice("ZF-RT-05", "GET", "/realtime/sessions"),
    _voice("ZF-RT-06", "DELETE", "/realtime/sessions/{id}"),
)


# -- what holds for all of it ------------------------------------------------------------------------------------------

LISTS = ("/agents", "/tools", "/tools/mcp", "/docs/structure")
UNKNOWN = ("/agents/examined-nobody", "/tools/examined-nobody", "/tools/mcp/examined-nobody")
GUARDED = ("/agents", "/tools/register", "/tools/execute", "/tools/mcp/register")
ELSEWHERE = "makes agents with ids that a careless server takes for places elsewhere"
FIXED = "asks to change an agent that the server came with, in nothing"
TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z")


@requirement("ZF-MG-01")
async def refusals_are_wrapped(exam: ZenfluxExamination) -> None:
    """What nobody has is refused with a code of 4xx and data null, and is not said to be unimplemented."""
    for path in UNKNOWN:
        (await manage(exam, "GET", path)).refused("nobody has it")


@requirement("ZF-MG-02")
async def members_of_data_stand_beside_it(exam: ZenfluxExamination) -> None:
    """The members of an object in data, and success true, stand beside the wrapper."""
    await offered(exam, "/agents")
    for path in LISTS[:2]:
        answer = await call(exam, "GET", path)
        data = expect.keyed(f"the data of GET {path}", answer.done())
        told = {name: answer.body.get(name) for name in data if name not in ("code", "message", "data", "success")}
        expect.equal("what stands beside the wrapper", {name: data[name] for name in told}, told)
        expect.equal("success", True, answer.body.get("success"))


@requirement("ZF-MG-03")
async def the_message_of_a_success_is_success(exam: ZenfluxExamination) -> None:
    """The message of a success is `success`."""
    answers = [await manage(exam, "GET", path) for path in LISTS]
    told = {answer.reply.asked: answer.body["message"] for answer in answers if answer.is_done}
    expect.equal("the messages", dict.fromkeys(told, "success"), told)
    expect.that(bool(told), "a success of any of the lists", [answer.reply.told for answer in answers])


@requirement("ZF-MG-04")
async def a_refusal_says_its_reason_in_a_word(exam: ZenfluxExamination) -> None:
    """A refusal has detail {code, message}: a word for what is wrong, and the text of the message."""
    await offered(exam, "/agents")
    words = {"/agents": "AGENT_NOT_FOUND", "/tools": "TOOL_NOT_FOUND", "/tools/mcp": "MCP_NOT_FOUND"}
    for place, word in words.items():
        answer = await call(exam, "GET", f"{place}/{own_name()}")
        detail = expect.keyed("detail of a refusal", answer.body.get("detail"), "code", "message")
        expect.equal("detail", [word, answer.body["message"]], [detail["code"], detail["message"]])


@requirement("ZF-MG-05")
async def refusals_have_their_status(exam: ZenfluxExamination) -> None:
    """The status is 400 for a bad body, 404 for what is unknown and 409 for a duplicate."""
    agent = await agents.own_agent(exam)
    answers = [
        await call(exam, "POST", "/agents", {"name": 7}),
        await call(exam, "GET", f"/agents/{own_name()}"),
        await call(exam, "POST", "/agents", agents.configuration(agent_id=agent.id)),
    ]
    expect.equal("the statuses", [400, 404, 409], [answer.reply.status for answer in answers])


@requirement("ZF-MG-06")
async def a_success_is_200_or_201(exam: ZenfluxExamination) -> None:
    """The status of a success is 200, or 201 where something is made; its code is 200."""
    await agents.own_agent(exam)
    made = await agents.create(exam, agents.configuration())
    seen = await call(exam, "GET", "/agents")
    expect.that(made.reply.status in (200, 201), "200 or 201 where something is made", made.reply.told)
    expect.equal("the status of a list", 200, seen.reply.status)
    expect.equal("the codes", [200, 200], [made.code, seen.code])


@requirement("ZF-MG-07", destructive=ELSEWHERE)
async def names_are_no_places(exam: ZenfluxExamination) -> None:
    """A name with other signs than letters, digits, - and _ is 400 in a body and 404 in a path."""
    await agents.own_agent(exam)
    for name in ("../examined", "examined/../x", "exämined", "-examined", "e" * 65):
        refused(await call(exam, "POST", "/agents", agents.configuration(agent_id=name)), 400)
    for path in ("/agents/..%2fexamined", "/agents/ex%20amined"):
        refused(await call(exam, "GET", path), 404)


@requirement("ZF-MG-08")
async def reserved_names_are_nobodys(exam: ZenfluxExamination) -> None:
    """Nothing can be called as a call is called: templates, validate, reload; schemas, register; available."""
    await agents.own_agent(exam)
    for name in ("templates", "validate", "reload"):
        config = agents.configuration(agent_id=name)
        refused(await agents.create(exam, config), 400, 409)
    for name in ("schemas", "register"):
        refused(await tools.register(exam, tools.definition(name=name)), 400, 403, 409)
    about = mcp_servers.registration(server_name="available")
    refused(await mcp_servers.register(exam, about), 400, 403, 409)


@requirement("ZF-MG-09")
async def bodies_are_read_with_care(exam: ZenfluxExamination) -> None:
    """Unknown members are ignored and null is absent; a wrong type, and what is no JSON object, is 400."""
    await agents.own_agent(exam)
    config = agents.configuration(auto_register=True, examined={"by": ["us"]}, model=None, llm=None)
    (await agents.create(exam, config)).done("ZF-MG-09")
    for change in ({"name": 7}, {"prompt": ["x"]}, {"enabled_capabilities": "all"}):
        refused(await agents.create(exam, agents.configuration(**change)), 400)
    refused(await call(exam, "POST", "/agents", ["agent"]), 400)
    refused(await exam.ask("POST", "/agents", body=b"{not json"), 400)


@requirement("ZF-MG-11", destructive=FIXED)
async def what_is_configured_is_fixed(exam: ZenfluxExamination) -> None:
    """An agent that the server came with can be looked at and not changed: 403."""
    with expect.preparing("an agent that the server came with"):
        items = listed((await call(exam, "GET", "/agents")).done(), "agents")
        first = expect.first("an agent", (item.get("agent_id") for item in items), items)
    refused(await call(exam, "PUT", f"/agents/{exam.profile.agent or first}", {}), 403)


@requirement("ZF-MG-12")
async def times_are_of_utc(exam: ZenfluxExamination) -> None:
    """Times are of UTC and end in Z."""
    agent = await agents.own_agent(exam)
    data = expect.keyed("the agent", await exam.get(agent.path), "created_at")
    times = {name: data[name] for name in data if name.endswith("_at") and data[name] is not None}
    wrong = {name: time for name, time in times.items() if not TIME.fullmatch(str(time))}
    expect.equal("times that are not as 2025-01-01T00:00:00Z", {}, wrong)


@requirement("ZF-MG-13")
async def texts_and_lists_are_never_null(exam: ZenfluxExamination) -> None:
    """name, description and version of agents and tools are strings, and what is a list is never null."""
    await offered(exam, "/agents")
    found = [*listed(await exam.get("/agents"), "agents"), *listed(await exam.get("/tools"), "tools")]
    for item in found:
        for name in ("name", "description", *(name for name in ("version",) if name in item)):
            expect.that(isinstance(item.get(name), str), f"a string as {name}", item)
        for name in (name for name in ("keywords", "examples", "skills", "apis") if name in item):
            expect.that(isinstance(item[name], list), f"a list as {name}", item)


@requirement("ZF-MG-14")
async def a_body_is_checked_before_a_right(exam: ZenfluxExamination) -> None:
    """An empty object is 400 to a call that makes or does something, whoever asks."""
    await offered(exam, "/agents")
    for path in GUARDED:
        refused(await call(exam, "POST", path, {}), 400)

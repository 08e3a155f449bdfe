"""Section tools: listed in pages, shown, registered, carried out, and told as schemas."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import (
    FORBIDDEN,
    call,
    deleted,
    expect_deleted_once,
    granted,
    made,
    make,
    manage,
    mentions,
    offered,
    own_name,
    own_unless_forbidden,
    perhaps,
    refused,
    shows,
)
from conformance.zenflux.profile import Execution
from conformance.zenflux.rest_answer import Answer, listed
from conformance.zenflux.rest_calls import BASE

TOOLS, REGISTER, EXECUTE = "/tools", "/tools/register", "/tools/execute"
UNFIT = (400, 422)
SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


@dataclass(frozen=True)
class Tool:
    """A tool; `mark` is a word that only its description has."""

    name: str
    mark: str

    @property
    def path(self) -> str:
        return f"{TOOLS}/{self.name}"


def definition(**more: Any) -> dict[str, Any]:
    """All that a new tool needs; members set to `...` are left out."""
    usual = {"name": own_name(), "description": f"Looks up a word for {own_name()}.", "input_schema": SCHEMA}
    return {name: value for name, value in (usual | more).items() if value is not ...}


async def register(exam: ZenfluxExamination, about: dict[str, Any], **more: Any) -> Answer:
    """The answer to the registration of a tool, which is undone after the case."""
    return await make(exam, REGISTER, {"definition": about, **more}, f"{TOOLS}/{about.get('name')}")


async def own_tool(exam: ZenfluxExamination, **more: Any) -> Tool:
    """A tool registered for this case; NotTestable if none can be."""
    with expect.preparing("a tool"):
        mark = own_name()
        about = definition(description=f"Looks up a word for {mark}.", **more)
        answer = await register(exam, about)
        made(answer, "register tools")
        tool = Tool(about["name"], mark)
        expect.that(await _is_there(exam, tool), "a tool that was registered to be there", answer.reply.told)
    return tool


async def _is_there(exam: ZenfluxExamination, tool: Tool) -> bool:
    return await shows(exam, tool.mark, f"{TOOLS}?keyword={tool.mark}&page_size=100") or await shows(
        exam, tool.mark, tool.path
    )


async def any_tool(exam: ZenfluxExamination) -> Tool:
    """A tool to look at: one of one's own, or else the first that is listed."""
    try:
        return await own_tool(exam)
    except NotTestable:
        with expect.preparing("a tool"):
            items = listed((await manage(exam, "GET", TOOLS)).done(), "tools")
            names = (item["name"] for item in items if isinstance(item.get("name"), str))
            name = expect.first("a tool in the list", names, items)
        return Tool(name, name)


async def names_of(exam: ZenfluxExamination, **query: str) -> list[Any]:
    """The names of the tools that a query finds."""
    return [item.get("name") for item in listed((await manage(exam, "GET", TOOLS, **query)).done(), "tools")]


def runnable(exam: ZenfluxExamination) -> Execution:
    if exam.profile.execute is None:
        raise NotTestable("the profile has no entry `execute`")
    return exam.profile.execute


def carried_out(answer: Answer) -> dict[str, Any]:
    """The outcome of a tool that the profile names; NotTestable where nobody may carry it out."""
    if answer.code in FORBIDDEN:
        raise NotTestable("the server lets nobody carry out the tool of the profile")
    return expect.keyed("the outcome", answer.done())


# -- the rows of the specification -------------------------------------------------------------------------------------


@requirement("ZF-HTTP-3.7-01")
async def tools_are_listed(exam: ZenfluxExamination) -> None:
    """GET /tools lists tools as objects."""
    listed((await manage(exam, "GET", TOOLS)).done(), "tools")


@requirement("ZF-HTTP-3.7-01")
async def tools_are_paged_and_filtered(exam: ZenfluxExamination) -> None:
    """keyword finds the tools that have it and page_size with page gives them one by one; nobody has a made-up one."""
    mark = own_name()
    can_register = all([await perhaps(exam, partial(own_tool, name=f"{mark}-{place}")) for place in range(2)])
    query = {"keyword": mark} if can_register else {}
    pages = [await names_of(exam, page=str(page), page_size="1", **query) for page in (1, 2)]
    expect.that(all(len(page) <= 1 for page in pages), "at most one tool on a page of one", pages)
    expect.equal("what has a made-up keyword", [], await names_of(exam, keyword=own_name()))
    if can_register:
        whole = await names_of(exam, keyword=mark)
        expect.equal("how many have the keyword", 2, len(whole))
        expect.equal("the pages together", sorted(whole), sorted(name for page in pages for name in page))


@requirement("ZF-HTTP-3.7-02")
async def a_tool_is_shown(exam: ZenfluxExamination) -> None:
    """GET /tools/{name} shows the tool of this name."""
    tool = await any_tool(exam)
    data = (await manage(exam, "GET", tool.path)).done()
    expect.that(mentions(data, tool.mark), f"the tool {tool.name} with {tool.mark} in its description", data)


@requirement("ZF-HTTP-3.7-03")
async def a_tool_is_registered(exam: ZenfluxExamination) -> None:
    """POST /tools/register keeps a tool; it may be forbidden."""
    tool = Tool(own_name(), own_name())
    if granted(await register(exam, definition(name=tool.name, description=f"Looks up {tool.mark}."))):
        expect.that(await _is_there(exam, tool), f"the tool {tool.name} to be there", "it is not")


@requirement("ZF-HTTP-3.7-04")
async def a_tool_is_unregistered(exam: ZenfluxExamination) -> None:
    """DELETE /tools/{name} removes a tool; it may be forbidden."""
    tool = await own_unless_forbidden(exam, own_tool, "DELETE", f"{TOOLS}/examined-nobody")
    if tool is not None and granted(await manage(exam, "DELETE", tool.path)):
        is_listed = await shows(exam, tool.mark, f"{TOOLS}?keyword={tool.mark}")
        is_left = is_listed and await shows(exam, tool.mark, tool.path)
        expect.that(not is_left, f"the tool {tool.name} to be gone", "it is still listed and shown")


@requirement("ZF-HTTP-3.7-05")
async def a_tool_is_executed(exam: ZenfluxExamination) -> None:
    """POST /tools/execute carries out the tool it names; it may be forbidden, and the input may not fit."""
    wanted = exam.profile.execute
    order = wanted or Execution(tool=(await any_tool(exam)).name)
    answer = await manage(exam, "POST", EXECUTE, {"tool_name": order.tool, "input": order.input})
    if wanted or answer.code not in UNFIT:
        granted(answer)


@requirement("ZF-HTTP-3.7-06")
async def a_tool_is_invoked(exam: ZenfluxExamination) -> None:
    """POST /tools/{name}/invoke carries out the tool; it may be forbidden, and the input may not fit."""
    wanted = exam.profile.execute
    order = wanted or Execution(tool=(await any_tool(exam)).name)
    answer = await manage(exam, "POST", f"{TOOLS}/{order.tool}/invoke", order.input)
    if wanted or answer.code not in UNFIT:
        granted(answer)


@requirement("ZF-HTTP-3.7-07")
async def schemas_are_as_claude_takes_them(exam: ZenfluxExamination) -> None:
    """GET /tools/schemas lists {name, description, input_schema} of the tools, and is not taken for a tool."""
    tool = await perhaps(exam, own_tool)
    items = listed((await manage(exam, "GET", "/tools/schemas")).done(), "tools", "schemas")
    for item in items:
        exam.schemas.fit("tool_schema", item, "a tool of GET /tools/schemas")
    if tool is not None:
        expect.that(mentions(items, tool.name), f"the schema of {tool.name}, which was registered", items)


# -- what the published server does ------------------------------------------------------------------------------------


@requirement("ZF-TL-01.in")
async def tools_are_filtered_by_all_their_words(exam: ZenfluxExamination) -> None:
    """tool_type, category and status narrow the list; keyword is looked for in all texts, in any case."""
    category, word = own_name(), own_name()
    tool = await own_tool(exam, category=category, keywords=[word])
    for query in ({"category": category}, {"keyword": tool.name.upper()}, {"keyword": tool.mark}, {"keyword": word}):
        expect.equal(f"what {query} finds", [tool.name], await names_of(exam, **query))
    both = {"category": category, "tool_type": "user_defined", "status": "available"}
    expect.equal("what all filters find", [tool.name], await names_of(exam, **both))
    for other in ({"tool_type": "mcp"}, {"status": "disabled"}):
        expect.equal(f"what {other} leaves", [], await names_of(exam, category=category, **other))


@requirement("ZF-TL-01.out")
async def a_page_of_tools_has_its_shape(exam: ZenfluxExamination) -> None:
    """data is {tools, total, page, page_size}; total counts all that fit, and a page past the end is empty."""
    tool = await own_tool(exam)
    data = await exam.read("tool_page", TOOLS, keyword=tool.mark, page=1, page_size=5)
    told = [[item["name"] for item in data["tools"]], data["total"], data["page"], data["page_size"]]
    expect.equal("the page", [[tool.name], 1, 1, 5], told)
    past = await exam.read("tool_page", TOOLS, keyword=tool.mark, page=2, page_size=5)
    expect.equal("the page past the end", [[], 1, 2], [past["tools"], past["total"], past["page"]])


@requirement("ZF-TL-01.err")
async def pages_have_bounds(exam: ZenfluxExamination) -> None:
    """page 0, page_size 0 and 101, and words that tool_type and status do not have, are 400."""
    await offered(exam, TOOLS)
    wrong = ("page=0", "page=x", "page_size=0", "page_size=101", "tool_type=magic", "status=magic")
    for name, value in (query.split("=") for query in wrong):
        refused(await call(exam, "GET", TOOLS, **{name: value}), 400)


@requirement("ZF-TL-02.out")
async def a_tool_is_shown_with_its_statistics(exam: ZenfluxExamination) -> None:
    """data is {definition, statistics, recent_invocations}."""
    tool = await own_tool(exam)
    data = await exam.read("tool_detail", tool.path)
    expect.equal("the name and the schema", [tool.name, SCHEMA], _name_and_schema(data["definition"]))


def _name_and_schema(about: dict[str, Any]) -> list[Any]:
    return [about["name"], about["input_schema"]]


@requirement("ZF-TL-02.err")
async def an_unknown_tool_is_not_shown(exam: ZenfluxExamination) -> None:
    """An unknown tool is a 404."""
    await offered(exam, TOOLS)
    refused(await call(exam, "GET", f"{TOOLS}/{own_name()}"), 404)


@requirement("ZF-TL-03.in")
async def a_tool_can_be_replaced(exam: ZenfluxExamination) -> None:
    """With replace_existing a tool takes the place of another; a definition may also be the body itself."""
    tool, mark = await own_tool(exam), own_name()
    about = definition(name=tool.name, description=f"Looks up {mark}.")
    (await register(exam, about, replace_existing=True)).done("ZF-TL-03.in")
    expect.that(await shows(exam, mark, tool.path), "the tool to be the newer one", "it is not")
    bare = definition()
    (await make(exam, REGISTER, bare, f"{TOOLS}/{bare['name']}")).done("ZF-TL-03.in")


@requirement("ZF-TL-03.out")
async def a_registered_tool_is_told(exam: ZenfluxExamination) -> None:
    """data is {tool_name, tool_definition}."""
    await own_tool(exam)
    about = definition()
    data = (await register(exam, about)).done()
    exam.schemas.fit("tool_registered", data, f"the data of POST {REGISTER}")
    told = [data["tool_name"], *_name_and_schema(data["tool_definition"])]
    expect.equal("the tool", [about["name"], about["name"], SCHEMA], told)


@requirement("ZF-TL-03.err")
async def a_tool_that_makes_no_sense_is_refused(exam: ZenfluxExamination) -> None:
    """No name, description or schema, a wrong schema and an mcp tool without mcp_config are 400; taken is 409."""
    tool = await own_tool(exam)
    wrong: tuple[dict[str, Any], ...] = (
        {"name": ...},
        {"name": "a b/c"},
        {"description": ...},
        {"input_schema": ...},
        {"input_schema": {"type": "nonsense"}},
        {"tool_type": "mcp"},
    )
    for change in wrong:
        refused(await register(exam, definition(**change)), 400)
    refused(await call(exam, "POST", REGISTER, {"definition": definition(name=tool.name)}), 409)


@requirement("ZF-TL-03.err", destructive="registers a tool whose code the server is to load, which a careless one does")
async def code_of_clients_is_forbidden(exam: ZenfluxExamination) -> None:
    """A tool with an implementation (a module and a class) is forbidden with 403."""
    await own_tool(exam)
    code = {"module": "examined_by_nobody", "class": "Tool"}
    refused(await register(exam, definition(implementation=code)), 403)


@requirement("ZF-TL-04.out")
async def an_unregistered_tool_is_told(exam: ZenfluxExamination) -> None:
    """data is {tool_name}."""
    tool = await own_tool(exam)
    data = await deleted(exam, tool.path, "tool_removed")
    expect.equal("tool_name", tool.name, data["tool_name"])


@requirement("ZF-TL-04.err")
async def a_tool_is_unregistered_once(exam: ZenfluxExamination) -> None:
    """Unregistering a tool twice is a 404."""
    tool = await own_tool(exam)
    await expect_deleted_once(exam, tool.path)


@requirement("ZF-TL-04.err", destructive="asks to delete a tool that is not its own")
async def a_tool_of_the_server_stays(exam: ZenfluxExamination) -> None:
    """A tool that nobody has registered cannot be unregistered: 403."""
    order = runnable(exam)
    await offered(exam, f"{TOOLS}/{order.tool}")
    refused(await call(exam, "DELETE", f"{TOOLS}/{order.tool}"), 403)


@requirement("ZF-TL-05.out")
async def an_execution_is_told(exam: ZenfluxExamination) -> None:
    """data is {invocation_id, tool_name, status, output, error, error_code, started_at, completed_at, duration_ms}."""
    order = runnable(exam)
    await offered(exam, TOOLS)
    data = carried_out(await call(exam, "POST", EXECUTE, {"tool_name": order.tool, "input": order.input}))
    exam.schemas.fit("tool_outcome", data, f"the data of POST {EXECUTE}")
    told = [data["tool_name"], data["status"], data["error"], "output" in data]
    expect.equal("tool, status and error", [order.tool, "success", None, True], told)


@requirement("ZF-TL-05.err")
async def what_cannot_be_executed_is_refused(exam: ZenfluxExamination) -> None:
    """No tool_name is 400, an unknown tool is 404, and a tool that only a client can carry out is 400."""
    await offered(exam, TOOLS)
    refused(await call(exam, "POST", EXECUTE, {"input": {}}), 400)
    refused(await call(exam, "POST", EXECUTE, {"tool_name": own_name(), "input": {}}), 404)
    if (tool := await perhaps(exam, own_tool)) is not None:
        refused(await call(exam, "POST", EXECUTE, {"tool_name": tool.name, "input": {"word": "x"}}), 400, 403)


@requirement("ZF-TL-05.does")
async def an_execution_can_be_streamed(exam: ZenfluxExamination) -> None:
    """With stream true the answer is an event stream of numbered chunks that ends with one of type done."""
    order = runnable(exam)
    await offered(exam, TOOLS)
    body = {"tool_name": order.tool, "input": order.input, "stream": True}
    chunks: list[dict[str, Any]] = []
    async with exam.http.stream("POST", f"{BASE}{EXECUTE}", body) as stream:
        if stream.status in FORBIDDEN:
            raise NotTestable("the server lets nobody carry out the tool of the profile")
        expect.that(stream.is_event_stream, f"POST {EXECUTE} to be answered with an event stream", stream.headers)
        while (event := await stream.next()) is not None:
            chunk = expect.parsed(event.data, "the data of a chunk")
            exam.schemas.fit("tool_chunk", chunk, "a chunk")
            chunks.append(chunk)
    expect.equal("the numbers of the chunks", list(range(len(chunks))), [item["chunk_index"] for item in chunks])
    expect.equal("the last chunk", ["done"], [item["chunk_type"] for item in chunks[-1:]])


@requirement("ZF-TL-06.out")
async def an_invocation_is_told(exam: ZenfluxExamination) -> None:
    """data is that of an execution."""
    order = runnable(exam)
    await offered(exam, TOOLS)
    path = f"{TOOLS}/{order.tool}/invoke"
    data = carried_out(await call(exam, "POST", path, order.input))
    exam.schemas.fit("tool_outcome", data, f"the data of POST {path}")
    expect.equal("tool and status", [order.tool, "success"], [data["tool_name"], data["status"]])


@requirement("ZF-TL-06.err")
async def an_unknown_tool_is_not_invoked(exam: ZenfluxExamination) -> None:
    """Invoking an unknown tool is a 404, and a body that is no object is 400."""
    order = runnable(exam)
    await offered(exam, TOOLS)
    refused(await call(exam, "POST", f"{TOOLS}/{own_name()}/invoke", {}), 404)
    refused(await call(exam, "POST", f"{TOOLS}/{order.tool}/invoke", [7]), 400)


@requirement("ZF-TL-07.in")
async def schemas_can_be_chosen(exam: ZenfluxExamination) -> None:
    """tool_names chooses schemas by name, and names that nobody has are passed over."""
    tool, other = await own_tool(exam), await own_tool(exam)
    names = f"{tool.name},{own_name()}"
    data = (await call(exam, "GET", "/tools/schemas", tool_names=names)).done()
    found = [item.get("name") for item in listed(data, "tools")]
    expect.equal(f"what was chosen, and not {other.name}", [tool.name], found)

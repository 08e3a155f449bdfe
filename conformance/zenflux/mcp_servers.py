"""Section mcp_servers: the register of MCP servers."""

from dataclasses import dataclass
from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import (
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
from conformance.zenflux.rest_answer import Answer, listed

SERVERS = "/tools/mcp"
REGISTER = f"{SERVERS}/register"
NOBODY = f"{SERVERS}/examined-nobody"


@dataclass(frozen=True)
class Server:
    """A server of the register; `mark` is a word that only its address has."""

    name: str
    mark: str

    @property
    def path(self) -> str:
        return f"{SERVERS}/{self.name}"


def address(mark: str) -> str:
    """A public address that nobody asks: a server is registered, and not used."""
    return f"https://example.com/{mark}/mcp"


def registration(**more: Any) -> dict[str, Any]:
    """All that a new server of the register needs; members set to `...` are left out."""
    usual = {"server_name": own_name(), "server_url": address(own_name()), "description": "Made by the examiners."}
    return {name: value for name, value in (usual | more).items() if value is not ...}


async def register(exam: ZenfluxExamination, about: dict[str, Any]) -> Answer:
    """The answer to a registration, which is undone after the case."""
    return await make(exam, REGISTER, about, f"{SERVERS}/{about.get('server_name')}")


async def own_server(exam: ZenfluxExamination) -> Server:
    """A server registered for this case; NotTestable if none can be."""
    with expect.preparing("an MCP server"):
        server = Server(own_name(), own_name())
        answer = await register(exam, registration(server_name=server.name, server_url=address(server.mark)))
        made(answer, "register MCP servers")
        expect.that(await is_there(exam, server), "a server that was registered to be there", answer.reply.told)
    return server


async def is_there(exam: ZenfluxExamination, server: Server) -> bool:
    return await shows(exam, server.mark, SERVERS) or await shows(exam, server.mark, server.path)


async def any_server(exam: ZenfluxExamination) -> Server:
    """A server to look at: one of one's own, or else the first that is listed."""
    try:
        return await own_server(exam)
    except NotTestable:
        with expect.preparing("an MCP server"):
            items = listed((await manage(exam, "GET", SERVERS)).done(), "servers", "mcps")
            names = (item[key] for item in items for key in ("server_name", "name") if isinstance(item.get(key), str))
            name = expect.first("a server in the list", names, items)
        return Server(name, name)


# -- the rows of the specification -------------------------------------------------------------------------------------


@requirement("ZF-HTTP-3.7-08")
async def a_server_is_registered(exam: ZenfluxExamination) -> None:
    """POST /tools/mcp/register keeps a server; it may be forbidden."""
    server = Server(own_name(), own_name())
    if granted(await register(exam, registration(server_name=server.name, server_url=address(server.mark)))):
        expect.that(await is_there(exam, server), f"the server {server.name} to be there", "it is not")


@requirement("ZF-HTTP-3.7-09")
async def servers_are_listed(exam: ZenfluxExamination) -> None:
    """GET /tools/mcp lists the servers of the register as objects, among them one that was registered."""
    server = await perhaps(exam, own_server)
    items = listed((await manage(exam, "GET", SERVERS)).done(), "servers", "mcps")
    if server is not None:
        expect.that(mentions(items, server.name), f"the server {server.name} in the list", items)


@requirement("ZF-HTTP-3.7-10")
async def a_server_is_shown(exam: ZenfluxExamination) -> None:
    """GET /tools/mcp/{name} shows the server of this name."""
    server = await any_server(exam)
    data = (await manage(exam, "GET", server.path)).done()
    expect.that(mentions(data, server.mark), f"the server {server.name} with {server.mark} in its address", data)


@requirement("ZF-HTTP-3.7-11")
async def a_server_is_changed(exam: ZenfluxExamination) -> None:
    """PUT /tools/mcp/{name} changes a server of the register; it may be forbidden."""
    mark = own_name()
    change = {"server_url": address(mark)}
    server = await own_unless_forbidden(exam, own_server, "PUT", NOBODY, change)
    if server is not None and granted(await manage(exam, "PUT", server.path, change)):
        is_changed = await shows(exam, mark, SERVERS, server.path)
        expect.that(is_changed, f"the server {server.name} to have its new address", "it does not")


@requirement("ZF-HTTP-3.7-12")
async def a_server_is_removed(exam: ZenfluxExamination) -> None:
    """DELETE /tools/mcp/{name} removes a server from the register; it may be forbidden."""
    server = await own_unless_forbidden(exam, own_server, "DELETE", NOBODY)
    if server is not None and granted(await manage(exam, "DELETE", server.path)):
        is_left = await shows(exam, server.mark, SERVERS) and await shows(exam, server.mark, server.path)
        expect.that(not is_left, f"the server {server.name} to be gone", "it is still listed and shown")


# -- what the published server does ------------------------------------------------------------------------------------


@requirement("ZF-MCP-06.out")
async def a_registration_is_answered_with_the_name(exam: ZenfluxExamination) -> None:
    """data is {server_name, registered_tools, failed_tools}; nothing is connected to, so that there are no tools."""
    await own_server(exam)
    about = registration()
    data = (await register(exam, about)).done()
    exam.schemas.fit("mcp_registered", data, f"the data of POST {REGISTER}")
    told = [data["server_name"], data["registered_tools"], data["failed_tools"]]
    expect.equal("the registration", [about["server_name"], [], []], told)


@requirement("ZF-MCP-06.err")
async def a_registration_that_makes_no_sense_is_refused(exam: ZenfluxExamination) -> None:
    """A bad name or address and an unknown auth_type are 400, and a name that is taken is 409."""
    server = await own_server(exam)
    wrong: tuple[dict[str, Any], ...] = (
        {"server_name": ...},
        {"server_name": "a b/c"},
        {"server_url": ...},
        {"server_url": "nowhere"},
        {"server_url": "ftp://example.com/mcp"},
        {"auth_type": "magic"},
    )
    for change in wrong:
        refused(await register(exam, registration(**change)), 400)
    about = registration(server_name=server.name)
    refused(await call(exam, "POST", REGISTER, about), 409)


@requirement("ZF-MCP-06.err", destructive="registers commands and inner addresses, which a careless server may use")
async def commands_and_inner_addresses_are_forbidden(exam: ZenfluxExamination) -> None:
    """A command, and an address of an inner network, are forbidden with 403."""
    await own_server(exam)
    command = registration(command="true", args=["examined"])
    inner = registration(server_url="http://127.0.0.1:9/mcp")
    for about in (command, inner):
        refused(await register(exam, about), 403)


@requirement("ZF-MCP-06.does")
async def a_token_is_not_shown_again(exam: ZenfluxExamination) -> None:
    """A token given in auth_config stands in no answer."""
    await own_server(exam)
    token = f"token-{own_name()}"
    about = registration(auth_type="bearer", auth_config={"token": token})
    answer = await register(exam, about)
    answer.done()
    places = (SERVERS, f"{SERVERS}/{about['server_name']}")
    is_shown = token in answer.reply.text or await shows(exam, token, *places)
    expect.that(not is_shown, "a token that was given never to be shown", "it is shown")


@requirement("ZF-MCP-07.out")
async def the_register_has_its_shape(exam: ZenfluxExamination) -> None:
    """data is {total, servers}; each is a whole server with is_connected and connected_tools_count."""
    server = await own_server(exam)
    data = await exam.read("mcp_server_page", SERVERS)
    expect.equal("total", len(data["servers"]), data["total"])
    found = [item["server_url"] for item in data["servers"] if item["server_name"] == server.name]
    expect.equal("the address of the server", [address(server.mark)], found)


@requirement("ZF-MCP-07.in")
async def inactive_servers_are_listed_on_demand(exam: ZenfluxExamination) -> None:
    """A server that was made inactive is listed with include_inactive only; another word than true or false is 400."""
    server = await own_server(exam)
    (await call(exam, "PUT", server.path, {"is_active": False})).done()
    expect.that(not await shows(exam, server.mark, SERVERS), "an inactive server not to be listed", "it is")
    items = listed((await call(exam, "GET", SERVERS, include_inactive="true")).done(), "servers")
    expect.that(mentions(items, server.name), "the server with include_inactive", items)
    refused(await call(exam, "GET", SERVERS, include_inactive="perhaps"), 400)


@requirement("ZF-MCP-08.out")
async def the_detail_of_a_server_has_its_shape(exam: ZenfluxExamination) -> None:
    """data is the server with is_connected, connected_tools and connected_tools_count."""
    server = await own_server(exam)
    data = await exam.read("mcp_server_detail", server.path)
    expect.equal("name and address", [server.name, address(server.mark)], [data["server_name"], data["server_url"]])


@requirement("ZF-MCP-08.err")
async def an_unknown_server_is_not_shown(exam: ZenfluxExamination) -> None:
    """An unknown server is a 404."""
    await offered(exam, SERVERS)
    refused(await call(exam, "GET", f"{SERVERS}/{own_name()}"), 404)


@requirement("ZF-MCP-09.in")
async def what_a_change_does_not_name_stays(exam: ZenfluxExamination) -> None:
    """A change of the description leaves the address as it was."""
    server, words = await own_server(exam), own_name()
    (await call(exam, "PUT", server.path, {"description": words})).done()
    with expect.preparing("a look at the server"):
        data = expect.keyed("the server", await exam.get(server.path), "description", "server_url")
    told = [data["description"], data["server_url"]]
    expect.equal("description and address", [words, address(server.mark)], told)


@requirement("ZF-MCP-09.out")
async def a_change_of_the_register_is_answered_with_the_server(exam: ZenfluxExamination) -> None:
    """data is the server, as it is after the change."""
    server, words = await own_server(exam), own_name()
    data = (await call(exam, "PUT", server.path, {"description": words})).done()
    exam.schemas.fit("mcp_server", data, f"the data of PUT {server.path}")
    expect.equal("name and description", [server.name, words], [data["server_name"], data["description"]])


@requirement("ZF-MCP-09.err")
async def a_change_that_makes_no_sense_is_refused(exam: ZenfluxExamination) -> None:
    """An unknown server is 404; a bad address and an unknown auth_type are 400."""
    server = await own_server(exam)
    refused(await call(exam, "PUT", f"{SERVERS}/{own_name()}", {"description": "x"}), 404)
    for change in ({"server_url": "nowhere"}, {"auth_type": "magic"}, {"description": 7}):
        refused(await call(exam, "PUT", server.path, change), 400)


@requirement("ZF-MCP-10.out")
async def a_removal_is_answered_with_the_name(exam: ZenfluxExamination) -> None:
    """data is {server_name}."""
    server = await own_server(exam)
    data = await deleted(exam, server.path, "mcp_removed")
    expect.equal("server_name", server.name, data["server_name"])


@requirement("ZF-MCP-10.err")
async def a_server_is_removed_once(exam: ZenfluxExamination) -> None:
    """Removing a server twice is a 404."""
    server = await own_server(exam)
    await expect_deleted_once(exam, server.path)

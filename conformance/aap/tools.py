"""Section tools: who runs a tool, who is asked, and how the agent goes on."""

from typing import Any

from conformance.aap import scenes
from conformance.aap.conversation import permission, result, user
from conformance.aap.examination import AapExamination
from conformance.aap.exchange import plain
from conformance.aap.scenes import FOUND, REASON
from conformance.aap.turn import STREAMED, WHOLE, Turn, expect_taken
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable


@requirement("AAP-TOOL-01")
async def a_client_tool_is_answered_by_the_client(exam: AapExamination) -> None:
    """The call stops the turn; the client's result is taken, kept, and the agent goes on from it."""
    for mode in (await exam.agent()).modes:
        pause = await scenes.returned(exam, mode)
        pause.after.spoke(pause.kept)
        kept = pause.result_of(exam.profile.client_spec["name"])
        expect.equal("the result in the history", plain(FOUND), plain(kept if kept is not None else []))


@requirement("AAP-TOOL-02")
async def a_granted_tool_is_run_by_the_server(exam: AapExamination) -> None:
    """Without trust the turn stops for permission; once granted, the server's own result is sent."""
    tool = exam.profile.server_tool("second_tool")
    for mode in (await exam.agent()).modes:
        pause = await scenes.decided(exam, mode, granted=True)
        expect.equal("the calls left open", list(pause.calls.values()), pause.turn.open_calls)
        if pause.calls[tool.name]["toolCallId"] not in pause.after.exchange.results:
            is_run = pause.has_run(tool.name, await scenes.real_result(exam))
            expect.fail("the result of the granted call", pause.after.shown, _tells(mode) if is_run else None)
        pause.after.spoke(pause.kept)


def _tells(mode: str) -> str:
    """The requirement by which a result that there is comes to the client."""
    return "AAP-SSE-05" if mode in STREAMED else WHOLE


@requirement("AAP-TOOL-02")
async def a_denied_tool_is_not_run(exam: AapExamination) -> None:
    """A denial enters the history as a tool message, and the agent goes on."""
    tool, agent = exam.profile.server_tool("second_tool"), await exam.agent()
    for mode in agent.modes:
        pause = await scenes.decided(exam, mode, granted=False)
        pause.after.spoke(pause.kept)
        kept = pause.result_of(tool.name)
        is_run = pause.has_run(tool.name, await scenes.real_result(exam))
        expect.that(bool(kept) and not is_run, "a tool message that says the call was denied", kept)


@requirement("AAP-TOOL-02")
async def a_denial_needs_no_reason(exam: AapExamination) -> None:
    """A denial without a reason enters the history as a tool message, too."""
    tool = exam.profile.server_tool("second_tool")
    talk = await exam.open(tools={tool.name: False})
    call = (await talk.say(tool.prompt)).stopped("tool_use", owner="AAP-TOOL-02").call(tool.name)
    (await talk.post([permission(call, False)])).spoke()
    kept = [item["toolCallId"] for item in await talk.history() if item["role"] == "tool"]
    expect.subset("the calls with a tool message", [call["toolCallId"]], kept)


@requirement("AAP-TOOL-03")
async def a_trusted_tool_runs_inline(exam: AapExamination) -> None:
    """With trust the call and the reply come in one turn, and the tool is run."""
    for mode in (await exam.agent()).modes:
        scene = (await scenes.told(exam, mode))[-1]
        scene.turn.stopped("end_turn", owner="AAP-TOOL-03")
        call = scene.turn.call(exam.profile.server_tool("second_tool").name)["toolCallId"]
        is_kept = any(item.get("toolCallId") == call for item in scene.kept)
        expect.that(is_kept or call in scene.turn.exchange.results, "the result of the call", scene.turn.shown)


@requirement("AAP-TOOL-03")
async def trust_must_be_given(exam: AapExamination) -> None:
    """With trust absent or false the tool waits for permission."""
    tool, agent = exam.profile.server_tool("first_tool"), await exam.agent()
    for refs in ([{"name": tool.name}], [{"name": tool.name, "trust": False}]):
        talk = await exam.open(agent=agent, agent_config={"tools": refs})
        turn = await talk.say(tool.prompt)
        turn.call(tool.name)
        expect.equal("results without permission", {}, dict(turn.exchange.results))


@requirement("AAP-TOOL-04")
async def three_kinds_at_once(exam: AapExamination) -> None:
    """The trusted result comes inline, the turn stops once, and one POST settles the other two."""
    one, other = exam.profile.server_tool("first_tool"), exam.profile.server_tool("second_tool")
    spec = exam.profile.client_spec
    for mode in (await exam.agent()).modes:
        pause = await scenes.parallel(exam, mode)
        await _expect_settled(exam, pause.after)
        replied = (await scenes.told(exam, mode))[-1].turn
        if pause.calls[one.name]["toolCallId"] not in pause.turn.exchange.results:
            is_told = bool(replied.exchange.results) or replied.stop == "tool_use"
            expect.fail("the result of the trusted tool", pause.turn.shown, None if is_told else _tells(mode))
        waiting = sorted(call["name"] for call in pause.turn.open_calls)
        expect.equal("the calls left open", sorted([other.name, spec["name"]]), waiting)
        if pause.calls[other.name]["toolCallId"] not in pause.after.exchange.results:
            granted = await scenes.decided(exam, mode, granted=True)
            is_run = granted.has_run(other.name, await scenes.real_result(exam))
            is_told = bool(granted.after.exchange.results)
            owner = None if is_told else _tells(mode) if is_run else "AAP-TOOL-02"
            expect.fail("the result of the granted tool", pause.after.shown, owner)


async def _expect_settled(exam: AapExamination, after: Turn) -> None:
    """Expect a turn whose calls are all answered not to stop for the client again."""
    if after.stop == "tool_use":
        plain_stop = (await scenes.told(exam, after.mode))[0].turn.stop
        expect.fail("no further stop", after.shown, "AAP-SSE-07" if plain_stop == "tool_use" else "AAP-TOOL-04")


@requirement("AAP-TOOL-04")
async def answers_of_both_kinds_come_in_any_order(exam: AapExamination) -> None:
    """A denial and a result in one POST, the denial first, settle their calls."""
    other, spec = exam.profile.server_tool("second_tool"), exam.profile.client_spec
    talk = await exam.open_for_all_kinds()
    turn = await talk.say(exam.profile.prompt("parallel"))
    denied, mine = turn.call(other.name), turn.call(spec["name"])
    turn.stopped("tool_use", owner="AAP-TOOL-02")
    scenes.expect_asked(turn, denied)
    await _expect_settled(exam, await talk.post([permission(denied, False, REASON), result(mine, "mine")]))


@requirement("AAP-TOOL-05")
async def content_is_made_of_known_blocks(exam: AapExamination) -> None:
    """Text, thinking, tool calls and images in replies and histories are blocks of the four kinds."""
    mode = (await exam.agent()).usual_mode
    for scene in await scenes.told(exam, mode):
        scene.turn.expect_readable()
        kinds = {block["type"] for message in scene.kept for block in _listed(message["content"])}
        if scenes.agrees(scene):
            told = {KINDS[item[0]] for item in scene.turn.exchange.said if item[0] != "text"}
            expect.subset("the kinds of blocks in the history", told, kinds)


KINDS = {"thinking": "thinking", "call": "tool_use", "image": "image"}


@requirement("AAP-TOOL-05")
async def images_shown_are_blocks(exam: AapExamination) -> None:
    """An image that the agent shows is a block with an https URL or a data URI, where it shows one."""
    if (prompt := exam.profile.prompts.image_reply) is None:
        raise NotTestable("the profile has no entry `prompts.image_reply`")
    talk = await exam.open()
    (await talk.say(prompt)).expect_readable()
    await talk.history()


def _images(exam: AapExamination) -> dict[str, list[dict[str, Any]]]:
    """A message with an image of each kind."""
    images = {"http": exam.profile.images.http, "data": exam.profile.images.data}
    if None in images.values():
        raise NotTestable("the profile has no entries `images.http` and `images.data`")
    text = {"type": "text", "text": "What is this?"}
    return {kind: [text, {"type": "image", "url": url}] for kind, url in images.items()}


@requirement("AAP-TOOL-05")
async def images_are_taken_if_declared(exam: AapExamination) -> None:
    """An image of a kind the agent declares is taken."""
    contents = _images(exam)
    for kind in sorted((await exam.agent()).image_kinds & set(contents)):
        talk = await exam.open()
        body = {"messages": [user(contents[kind])], "stream": talk.agent.usual_mode}
        expect.status(await talk.attempt(body), 200)


@requirement("AAP-TOOL-07", formerly="AAP-TOOL-05")
async def images_are_refused_unless_declared(exam: AapExamination) -> None:
    """An image of a kind that an agent does not declare is a 4xx."""
    contents = _images(exam)
    for agent in await exam.every_agent():
        for kind in set(contents) - agent.image_kinds:
            talk = await exam.open(agent=agent)
            refusal = await talk.attempt({"messages": [user(contents[kind])], "stream": agent.usual_mode})
            expect.refused(refusal, f"{agent.name} does not declare image.{kind}")


NO_IMAGES: tuple[tuple[str, str], ...] = (
    ("data:image/png,AAAA", "the data are not in base64"),
    ("data:image/png;base64,@@@@", "what follows `base64,` is not base64"),
    ("data:image/png;base64,", "there are no data"),
    ("data:text/plain;base64,AAAA", "the data are no image"),
    ("data:", "it names no data"),
    ("https://", "it names no host"),
    ("https:///pixel.png", "it names no host"),
    ("ftp://example.com/pixel.png", "it is neither https nor data"),
    ("file:///etc/hostname", "it is neither https nor data"),
    ("pixel.png", "it is neither https nor data"),
    ("", "it is empty"),
)


@requirement("AAP-TOOL-07", formerly="AAP-TOOL-05")
async def images_of_another_form_are_refused(exam: AapExamination) -> None:
    """An image is an https:// URL or a data: URI with an image in base64; anything else is a 4xx and is not kept."""
    talk = await exam.open()
    for url, why in NO_IMAGES:
        content = [{"type": "text", "text": "What is this?"}, {"type": "image", "url": url}]
        refusal = await talk.attempt({"messages": [user(content)], "stream": talk.agent.usual_mode})
        expect.refused(refusal, f"of the image {url!r}, {why}")
        reply = await exam.create({"agent": {"name": talk.agent.name}, "messages": [user(content)]})
        if reply.status < 300:
            kept = await exam.conversation(talk.agent, reply).history()
            owner = None if any(item["role"] == "user" for item in kept) else "AAP-SESS-05"
            expect.fail(f"a seed to be refused with a 4xx, because of the image {url!r}, {why}", reply.told, owner)
    if "full" in talk.agent.history_types:
        kept = [item for item in await talk.history() if item["role"] == "user"]
        expect.equal("the images that were refused, in the history", [], kept)


@requirement("AAP-TOOL-06")
async def results_may_be_text_or_blocks(exam: AapExamination) -> None:
    """A client's result is taken as a string and as blocks, and kept."""
    spec = exam.profile.client_spec
    contents: list[Any] = ["one string", [{"type": "text", "text": "one "}, {"type": "text", "text": "or two"}], ""]
    for content in contents:
        talk = await exam.open(client_tools=[spec])
        turn = (await talk.say(exam.profile.prompt("client_tool"))).stopped("tool_use", owner="AAP-TOOL-01")
        call = turn.call(spec["name"])
        reply = await talk.attempt({"messages": [result(call, content)], "stream": talk.agent.usual_mode})
        expect_taken(reply, "AAP-TOOL-01" if content == contents[0] else "AAP-TOOL-06")
        kept = [item["content"] for item in await talk.history() if item.get("toolCallId") == call["toolCallId"]]
        owner = "AAP-TOOL-01" if content == contents[0] else None
        expect.that(bool(kept), "the result in the history", kept, owner)


def _listed(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []

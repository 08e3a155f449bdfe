"""Section tools: who runs a tool, who is asked, and how the agent goes on."""

from typing import Any

from conformance.aap.conversation import Conversation, permission, result, user
from conformance.aap.examination import AapExamination
from conformance.aap.exchange import plain
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable

REASON = "the examiners say no"


@requirement("AAP-TOOL-01")
async def a_client_tool_is_answered_by_the_client(exam: AapExamination) -> None:
    """The call stops the turn; the client's result is taken, kept, and the agent goes on from it."""
    spec = exam.profile.client_spec
    for mode in (await exam.agent()).modes:
        talk = await exam.open(client_tools=[spec])
        turn = (await talk.say(exam.profile.prompt("client_tool"), mode)).stopped("tool_use")
        call = turn.call(spec["name"])
        (await talk.post([result(call, "The word means: found.")], mode)).stopped("end_turn").spoke()
        kept = await _kept_result(talk, call)
        expect.equal("the result in the history", plain("The word means: found."), plain(kept))


@requirement("AAP-TOOL-02")
async def a_granted_tool_is_run_by_the_server(exam: AapExamination) -> None:
    """Without trust the turn stops for permission; once granted, the server's own result is sent and kept."""
    tool = exam.profile.server_tool("second_tool")
    for mode in (await exam.agent()).modes:
        talk = await exam.open(tools={tool.name: False})
        turn = (await talk.say(tool.prompt, mode)).stopped("tool_use")
        call = turn.call(tool.name)
        expect.equal("the calls left open", [call], turn.open_calls)
        granted = (await talk.post([permission(call, True)], mode)).stopped("end_turn").spoke()
        results = granted.exchange.results
        expect.equal("the calls with a result", [call["toolCallId"]], list(results))
        expect.equal("the result in the history", results[call["toolCallId"]], plain(await _kept_result(talk, call)))


@requirement("AAP-TOOL-02")
async def a_denied_tool_is_not_run(exam: AapExamination) -> None:
    """A denial, with a reason or without, enters the history as a tool message, and the agent goes on."""
    tool = exam.profile.server_tool("second_tool")
    talk = await exam.open(tools={tool.name: False})
    granted = await talk.post([permission((await talk.say(tool.prompt)).call(tool.name), True)])
    real = list(granted.exchange.results.values())
    for reason in (REASON, None):
        call = (await talk.say(tool.prompt)).stopped("tool_use").call(tool.name)
        (await talk.post([permission(call, False, reason)])).stopped("end_turn").spoke()
        kept = plain(await _kept_result(talk, call))
        expect.that(bool(kept) and kept not in real, "a tool message that says the call was denied", kept)


@requirement("AAP-TOOL-03")
async def a_trusted_tool_runs_inline(exam: AapExamination) -> None:
    """With trust the call, its result and the reply come in one turn."""
    tool = exam.profile.server_tool("first_tool")
    for mode in (await exam.agent()).modes:
        talk = await exam.open(tools={tool.name: True})
        turn = (await talk.say(tool.prompt, mode)).stopped("end_turn")
        call = turn.call(tool.name)["toolCallId"]
        expect.subset("the calls with a result", [call], turn.exchange.results)


@requirement("AAP-TOOL-03")
async def trust_must_be_given(exam: AapExamination) -> None:
    """With trust absent or false the tool waits for permission."""
    tool, agent = exam.profile.server_tool("first_tool"), await exam.agent()
    for refs in ([{"name": tool.name}], [{"name": tool.name, "trust": False}]):
        talk = await exam.open(agent=agent, agent_config={"tools": refs})
        turn = (await talk.say(tool.prompt)).stopped("tool_use")
        expect.equal("results without permission", {}, dict(turn.exchange.results))


@requirement("AAP-TOOL-04")
async def three_kinds_at_once(exam: AapExamination) -> None:
    """The trusted result comes inline, the turn stops once, and one POST settles the other two."""
    one, other = exam.profile.server_tool("first_tool"), exam.profile.server_tool("second_tool")
    spec = exam.profile.client_spec
    for mode in (await exam.agent()).modes:
        talk = await exam.open_for_all_kinds()
        turn = (await talk.say(exam.profile.prompt("parallel"), mode)).stopped("tool_use")
        trusted, asked, mine = turn.call(one.name), turn.call(other.name), turn.call(spec["name"])
        expect.equal("the calls with an inline result", [trusted["toolCallId"]], list(turn.exchange.results))
        waiting = sorted(call["name"] for call in turn.open_calls)
        expect.equal("the calls left open", sorted([other.name, spec["name"]]), waiting)
        answers = [result(mine, "mine"), permission(asked, True)]
        after = (await talk.post(answers, mode)).stopped("end_turn").spoke()
        expect.equal("the results after the answers", [asked["toolCallId"]], list(after.exchange.results))
        for call in (trusted, asked, mine):
            await _kept_result(talk, call)


@requirement("AAP-TOOL-04")
async def answers_of_both_kinds_come_in_any_order(exam: AapExamination) -> None:
    """A denial and a result in one POST, the denial first, settle their calls; nothing is run for the denied one."""
    other, spec = exam.profile.server_tool("second_tool"), exam.profile.client_spec
    talk = await exam.open_for_all_kinds()
    turn = (await talk.say(exam.profile.prompt("parallel"))).stopped("tool_use")
    denied, mine = turn.call(other.name), turn.call(spec["name"])
    answers = [permission(denied, False, REASON), result(mine, "mine")]
    (await talk.post(answers)).stopped("end_turn").spoke()
    expect.equal("the client's result in the history", plain("mine"), plain(await _kept_result(talk, mine)))
    await _kept_result(talk, denied)


@requirement("AAP-TOOL-05")
async def content_is_made_of_known_blocks(exam: AapExamination) -> None:
    """Text, thinking, tool calls and images in replies and histories are blocks of the four kinds."""
    tool = exam.profile.server_tool("second_tool")
    talk = await exam.open(tools={tool.name: True})
    prompts = [exam.profile.prompt("thinking"), tool.prompt]
    for prompt in [*prompts, *filter(None, [exam.profile.prompts.image_reply])]:
        (await talk.say(prompt)).stopped("end_turn")
    kinds = {block["type"] for message in await talk.history() for block in _listed(message["content"])}
    expect.subset("the kinds of blocks in the history", ["thinking", "tool_use"], kinds)


@requirement("AAP-TOOL-05")
async def images_are_taken_if_declared(exam: AapExamination) -> None:
    """An image of a kind the agent declares is taken and kept; of a kind it does not declare, it is a 4xx."""
    images = {"http": exam.profile.images.http, "data": exam.profile.images.data}
    if None in images.values():
        raise NotTestable("the profile has no entries `images.http` and `images.data`")
    text = {"type": "text", "text": "What is this?"}
    contents = {kind: [text, {"type": "image", "url": url}] for kind, url in images.items()}
    for agent in await exam.agents():
        for kind in set(images) - agent.image_kinds:
            talk = await exam.open(agent=agent)
            refusal = await talk.attempt({"messages": [user(contents[kind])], "stream": agent.usual_mode})
            expect.refused(refusal, f"{agent.name} does not declare image.{kind}")
    for kind in sorted((await exam.agent()).image_kinds & set(images)):
        talk = await exam.open()
        await talk.say(contents[kind])
        kept = [plain(message["content"]) for message in await talk.history()]
        expect.equal("the first message, as it was sent", plain(contents[kind]), kept[0] if kept else None)


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


@requirement("AAP-TOOL-05")
async def images_of_another_form_are_refused(exam: AapExamination) -> None:
    """An image is an https:// URL or a data: URI with an image in base64; anything else is a 4xx and is not kept."""
    talk = await exam.open()
    for url, why in NO_IMAGES:
        content = [{"type": "text", "text": "What is this?"}, {"type": "image", "url": url}]
        refusal = await talk.attempt({"messages": [user(content)], "stream": talk.agent.usual_mode})
        expect.refused(refusal, f"of the image {url!r}, {why}")
        seeded = {"agent": {"name": talk.agent.name}, "messages": [user(content)]}
        expect.refused(await exam.create(seeded), f"of the image {url!r}, {why}")
    if "full" in talk.agent.history_types:
        expect.equal("the history after the refusals", [], await talk.history())


@requirement("AAP-TOOL-06")
async def results_may_be_text_or_blocks(exam: AapExamination) -> None:
    """A client's result is taken as a string and as blocks, and kept as it was."""
    spec = exam.profile.client_spec
    contents: list[Any] = ["one string", [{"type": "text", "text": "one "}, {"type": "text", "text": "or two"}], ""]
    for content in contents:
        talk = await exam.open(client_tools=[spec])
        call = (await talk.say(exam.profile.prompt("client_tool"))).stopped("tool_use").call(spec["name"])
        (await talk.post([result(call, content)])).stopped("end_turn")
        expect.equal("the result in the history", plain(content), plain(await _kept_result(talk, call)))


async def _kept_result(talk: Conversation, call: dict[str, Any]) -> Any:
    """The content of the one tool message the history has for the call."""
    history = await talk.history()
    kept = [item["content"] for item in history if item["role"] == "tool" and item["toolCallId"] == call["toolCallId"]]
    expect.that(len(kept) == 1, f"one tool message for the call {call['toolCallId']} in the history", history)
    return kept[0]


def _listed(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []

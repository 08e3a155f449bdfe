"""Section streaming: the events of a turn, their order, and that every mode tells the same story."""


from conformance.aap.conversation import Conversation, permission, result
from conformance.aap.examination import AapExamination
from conformance.aap.exchange import blocks, of_messages
from conformance.aap.turn import VOCABULARY, Turn, opened, streamed_turn
from conformance.kit import expect
from conformance.kit.case import requirement


@requirement("AAP-SSE-01")
async def a_stream_opens_and_closes_once(exam: AapExamination) -> None:
    """In every streaming mode the first event is turn_start, the last turn_stop, and neither comes again."""
    tool = exam.profile.server_tool("first_tool")
    talk = await exam.open(tools={tool.name: True})
    for mode in talk.agent.streamed_modes:
        for prompt in (exam.profile.prompt("text"), tool.prompt, *filter(None, [exam.profile.prompts.thinking])):
            expect_ends(await talk.say(prompt, mode))


@requirement("AAP-SSE-01")
async def a_turn_that_waits_and_goes_on_is_two_streams(exam: AapExamination) -> None:
    """A turn that stops for the client, and the one that goes on from the answer, both open and close once."""
    tool, spec = exam.profile.server_tool("second_tool"), exam.profile.client_spec
    for mode in (await exam.agent()).streamed_modes:
        talk = await exam.open(tools={tool.name: False}, client_tools=[spec])
        for granted in (False, True):
            call = expect_ends(await talk.say(tool.prompt, mode)).call(tool.name)
            expect_ends(await talk.post([permission(call, granted)], mode))
        call = expect_ends(await talk.say(exam.profile.prompt("client_tool"), mode)).call(spec["name"])
        expect_ends(await talk.post([result(call, "found")], mode))


def expect_ends(turn: Turn) -> Turn:
    """Expect turn_start first, turn_stop last, and neither again."""
    names = [name for name, _ in turn.events]
    ends = {"first": names[:1], "last": names[-1:]}
    expect.equal(f"the ends of {turn.asked}", {"first": ["turn_start"], "last": ["turn_stop"]}, ends)
    counts = {name: names.count(name) for name in ("turn_start", "turn_stop")}
    expect.equal(f"how often {turn.asked} says so", {"turn_start": 1, "turn_stop": 1}, counts)
    return turn


@requirement("AAP-SSE-02")
async def delta_mode_speaks_in_deltas(exam: AapExamination) -> None:
    """Text and thinking come as deltas and as nothing else."""
    talk = await exam.open()
    talk.agent.needs_mode("delta")
    await _expect_parts(exam, talk, "delta", "text_delta", "thinking_delta")


@requirement("AAP-SSE-03")
async def message_mode_speaks_in_wholes(exam: AapExamination) -> None:
    """Text and thinking come whole and as nothing else."""
    talk = await exam.open()
    talk.agent.needs_mode("message")
    await _expect_parts(exam, talk, "message", "text", "thinking")


def expect_vocabulary(turn: Turn) -> None:
    """Expect no event of another mode."""
    strangers = [found for found in turn.names if found not in VOCABULARY[turn.mode]]
    expect.equal(f"events that do not belong to the mode {turn.mode}", [], strangers)


async def _expect_parts(exam: AapExamination, talk: Conversation, mode: str, text: str, thinking: str) -> None:
    for situation, name in (("text", text), ("thinking", thinking)):
        turn = await talk.say(exam.profile.prompt(situation), mode)
        expect_vocabulary(turn)
        expect.that(bool(turn.named(name)), f"at least one {name} in a reply with {situation}", turn.names)


@requirement("AAP-SSE-03")
async def every_part_is_one_event(exam: AapExamination) -> None:
    """The text and thinking events are, one for one, the parts of the assistant messages in the history."""
    tool = exam.profile.server_tool("first_tool")
    talk = await exam.open(tools={tool.name: True})
    talk.agent.needs_mode("message")
    for prompt in (exam.profile.prompt("text"), exam.profile.prompt("thinking"), tool.prompt):
        before = len(await talk.history())
        turn = await talk.say(prompt, "message")
        told = [(name, body[name]) for name, body in turn.events if name in ("text", "thinking")]
        kept = [
            (block["type"], block[block["type"]])
            for message in (await talk.history())[before:]
            if message["role"] == "assistant"
            for block in blocks(message["content"])
            if block["type"] in ("text", "thinking")
        ]
        expect.equal("the parts told in message mode, as the history has them", kept, told)


@requirement("AAP-SSE-04")
async def calls_are_announced(exam: AapExamination) -> None:
    """A tool_call carries an id of its own, the tool's name and an object, the same that the history keeps."""
    tool = exam.profile.server_tool("second_tool")
    talk = await exam.open(tools={tool.name: True})
    ids: list[str] = []
    for mode in talk.agent.streamed_modes:
        turn = await talk.say(tool.prompt, mode)
        turn.call(tool.name)
        ids += [call["toolCallId"] for call in turn.calls]
        kept = [item for item in of_messages(await talk.history()).said if item[0] == "call"]
        told = [item for item in turn.exchange.said if item[0] == "call"]
        expect.equal("the calls, as the history has them", kept[-len(told) :], told)
    expect.equal("ids that more than one call has", [], [name for name in ids if ids.count(name) > 1])


@requirement("AAP-SSE-04")
async def several_calls_come_before_the_stop(exam: AapExamination) -> None:
    """Parallel calls are announced one by one, all of them before turn_stop."""
    for mode in (await exam.agent()).streamed_modes:
        talk = await exam.open_for_all_kinds()
        turn = await talk.say(exam.profile.prompt("parallel"), mode)
        expect.equal("the last event", "turn_stop", turn.events[-1][0])
        ids = {body["toolCallId"] for body in turn.named("tool_call")}
        expect.that(len(ids) >= 3, "at least three tool_call events with different ids", turn.shown)


@requirement("AAP-SSE-05")
async def results_follow_their_calls(exam: AapExamination) -> None:
    """An inline tool_result comes after its tool_call; one that needed permission comes in the turn that granted it."""
    tool = exam.profile.server_tool("first_tool")
    for mode in (await exam.agent()).streamed_modes:
        turn = await (await exam.open(tools={tool.name: True})).say(tool.prompt, mode)
        order = [(name, body["toolCallId"]) for name, body in turn.events if name in ("tool_call", "tool_result")]
        call = turn.call(tool.name)["toolCallId"]
        expect.equal("call and result in order", [("tool_call", call), ("tool_result", call)], order)
        talk = await exam.open(tools={tool.name: False})
        asked = (await talk.say(tool.prompt, mode)).stopped("tool_use")
        expect.equal("results before permission was given", [], asked.named("tool_result"))
        granted = await talk.post([permission(asked.call(tool.name), True)], mode)
        told = [body["toolCallId"] for body in granted.named("tool_result")]
        expect.equal("results after permission was given", [asked.call(tool.name)["toolCallId"]], told)


@requirement("AAP-SSE-05")
async def client_tools_have_no_result_event(exam: AapExamination) -> None:
    """For a client tool no tool_result is sent, neither with the call nor after the client has answered."""
    spec = exam.profile.client_spec
    for mode in (await exam.agent()).streamed_modes:
        talk = await exam.open(client_tools=[spec])
        turn = await talk.say(exam.profile.prompt("client_tool"), mode)
        answered = await talk.post([result(turn.call(spec["name"]), "found")], mode)
        told = [*turn.named("tool_result"), *answered.named("tool_result")]
        expect.equal("tool_result events for a client tool", [], told)


@requirement("AAP-SSE-06")
async def a_plain_reply_stops_with_end_turn(exam: AapExamination) -> None:
    """In every mode the stop reason of a plain reply is end_turn."""
    talk = await exam.open()
    for mode in talk.agent.modes:
        (await talk.say(exam.profile.prompt("text"), mode)).stopped("end_turn")


@requirement("AAP-SSE-06")
async def a_cut_reply_stops_with_max_tokens(exam: AapExamination) -> None:
    """In every mode the stop reason of a reply cut by its limit is max_tokens."""
    talk = await exam.open()
    for mode in talk.agent.modes:
        (await talk.say(exam.profile.prompt("max_tokens"), mode)).stopped("max_tokens")


@requirement("AAP-SSE-06")
async def a_refusal_stops_with_refusal(exam: AapExamination) -> None:
    """In every mode the stop reason of a refusal by the model is refusal."""
    talk = await exam.open()
    for mode in talk.agent.modes:
        (await talk.say(exam.profile.prompt("refuse"), mode)).stopped("refusal")


@requirement("AAP-SSE-07")
async def a_tool_use_stop_waits_for_the_client(exam: AapExamination) -> None:
    """A client tool and an untrusted server tool stop the turn, their call open; trusted ones and text do not."""
    tool, spec = exam.profile.server_tool("first_tool"), exam.profile.client_spec
    for mode in (await exam.agent()).modes:
        for prompt in (exam.profile.prompt("text"), tool.prompt):
            talk = await exam.open(tools={tool.name: True})
            turn = await talk.say(prompt, mode)
            expect.that(turn.stop != "tool_use", "no tool_use stop: nothing awaits the client", turn.shown)
        waits = [(tool.name, tool.prompt), (spec["name"], exam.profile.prompt("client_tool"))]
        for name, prompt in waits:
            talk = await exam.open(tools={tool.name: False}, client_tools=[spec])
            turn = (await talk.say(prompt, mode)).stopped("tool_use")
            expect.equal("the calls left open", [name], [call["name"] for call in turn.open_calls])


@requirement("AAP-SSE-09")
async def a_failure_ends_the_stream_in_good_order(exam: AapExamination) -> None:
    """A turn that breaks in the middle ends with turn_stop and the reason error, in every streaming mode."""
    for mode in (await exam.agent()).streamed_modes:
        talk = await exam.open()
        turn = await talk.say(exam.profile.prompt("fail"), mode)
        expect.equal("the last event of a failed turn", "turn_stop", turn.names[-1] if turn.names else None)
        turn.stopped("error")


@requirement("AAP-SSE-09")
async def a_failure_at_the_start_is_told_too(exam: AapExamination) -> None:
    """A turn that breaks before it says anything is either a 5xx or a stream that ends with the reason error."""
    for mode in (await exam.agent()).streamed_modes:
        talk = await exam.open()
        async with talk.stream([{"role": "user", "content": exam.profile.prompt("fail_start")}], mode) as stream:
            if stream.status < 500:
                turn: Turn = await streamed_turn(await opened(stream), mode, exam.schemas)
                turn.stopped("error")

"""Section streaming: the events of a turn, their order, and what they say of it."""

from typing import Any

from conformance.aap import scenes
from conformance.aap.examination import AapExamination
from conformance.aap.exchange import blocks, of_messages
from conformance.aap.turn import ENDS, VOCABULARY, Turn
from conformance.kit import expect
from conformance.kit.case import requirement


@requirement("AAP-SSE-01")
async def a_stream_opens_and_closes_once(exam: AapExamination) -> None:
    """In every streaming mode the first event is turn_start, the last turn_stop, and neither comes again."""
    for mode in (await exam.agent()).streamed_modes:
        for scene in await scenes.told(exam, mode):
            expect_ends(scene.turn)


@requirement("AAP-SSE-01")
async def a_turn_that_waits_and_goes_on_is_two_streams(exam: AapExamination) -> None:
    """A turn that stops for the client, and the one that goes on from the answer, both open and close once."""
    for mode in (await exam.agent()).streamed_modes:
        for granted in (False, True):
            pause = await scenes.decided(exam, mode, granted)
            expect_ends(expect_ends(pause.turn) and pause.after)
        pause = await scenes.returned(exam, mode)
        expect_ends(expect_ends(pause.turn) and pause.after)


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
    (await exam.agent()).needs_mode("delta")
    await _expect_parts(exam, "delta", "text_delta", "thinking_delta")


@requirement("AAP-SSE-03")
async def message_mode_speaks_in_wholes(exam: AapExamination) -> None:
    """Text and thinking come whole and as nothing else."""
    (await exam.agent()).needs_mode("message")
    await _expect_parts(exam, "message", "text", "thinking")


def expect_vocabulary(turn: Turn) -> None:
    """Expect no event of another mode."""
    strangers = [found for found in turn.names if found not in VOCABULARY[turn.mode]]
    expect.equal(f"events that do not belong to the mode {turn.mode}", [], strangers)


async def _expect_parts(exam: AapExamination, mode: str, text: str, thinking: str) -> None:
    for scene in await scenes.told(exam, mode):
        scene.turn.expect_readable()
        expect_vocabulary(scene.turn)
        name = thinking if scene.prompt == exam.profile.prompts.thinking else text
        if scene.turn.named("tool_call"):
            continue
        owner = ENDS if scene.turn.is_overrun else None
        expect.that(bool(scene.turn.named(name)), f"at least one {name} in the reply", scene.turn.names, owner)


@requirement("AAP-SSE-03")
async def every_part_is_one_event(exam: AapExamination) -> None:
    """The text and thinking events are, one for one, the parts of the assistant messages in the history."""
    (await exam.agent()).needs_mode("message")
    for place, scene in enumerate(await scenes.told(exam, "message")):
        assert scene.turn.exchange
        told = [(name, body[name]) for name, body in scene.turn.told if name in ("text", "thinking")]
        said = [block for item in scene.kept if item["role"] == "assistant" for block in blocks(item["content"])]
        kept = [(block["type"], block[block["type"]]) for block in said if block["type"] in ("text", "thinking")]
        if not scenes.agrees(scene):
            expect.fail("the words that the history has", told, await scenes.culprit(exam, place, "message"))
        expect.equal("the parts told in message mode, as the history has them", kept, told)


@requirement("AAP-SSE-04")
async def calls_are_announced(exam: AapExamination) -> None:
    """A tool_call carries an id of its own, the tool's name and an object, the same that the history keeps."""
    ids: list[str] = []
    for mode in (await exam.agent()).streamed_modes:
        scene = (await scenes.told(exam, mode))[-1]
        ids += [call["toolCallId"] for call in scene.turn.calls]
        kept = [item for item in of_messages(scene.kept).said if item[0] == "call"]
        told = [item for item in scene.turn.exchange.said if item[0] == "call"]
        if kept != told:
            only_ids_differ = scenes.agrees(scene)
            owner = "AAP-SSE-04" if only_ids_differ else await _caller(exam, kept, mode)
            expect.fail(f"the calls, as the history has them: {expect.show(kept)}", told, owner)
    expect.equal("ids that more than one call has", [], [name for name in ids if ids.count(name) > 1])


async def _caller(exam: AapExamination, kept: list[Any], mode: str) -> str:
    """Who is to blame where the last reply has other calls than the history."""
    who = await scenes.culprit(exam, -1, mode)
    return "AAP-SSE-04" if who == "AAP-HIST-03" and kept else who


@requirement("AAP-SSE-04")
async def several_calls_come_before_the_stop(exam: AapExamination) -> None:
    """Parallel calls are announced one by one, all of them before turn_stop."""
    for mode in (await exam.agent()).streamed_modes:
        talk = await exam.open_for_all_kinds()
        turn = await talk.say(exam.profile.prompt("parallel"), mode)
        ids = {call["toolCallId"] for call in turn.calls}
        kept = {item[1] for item in of_messages(await talk.history()).said if item[0] == "call"}
        expect.that(len(ids) >= min(3, len(kept)), "a tool_call event for every call of the turn", turn.shown)


@requirement("AAP-SSE-05")
async def results_follow_their_calls(exam: AapExamination) -> None:
    """An inline tool_result comes after its tool_call; one that needed permission comes in the turn that granted it."""
    tool = exam.profile.server_tool("second_tool")
    for mode in (await exam.agent()).streamed_modes:
        scene = (await scenes.told(exam, mode))[-1]
        scene.turn.stopped("end_turn").expect_readable()
        found = [(name, body["toolCallId"]) for name, body in scene.turn.told if "toolCallId" in body]
        call = scene.turn.call(tool.name)["toolCallId"]
        wanted = [("tool_call", call), ("tool_result", call)]
        expect.equal("call and result in order", wanted, [*dict.fromkeys(found)])
        pause = await scenes.decided(exam, mode, granted=True)
        expect.equal("results before permission was given", [], pause.turn.named("tool_result"))
        told = [body["toolCallId"] for body in pause.after.named("tool_result")]
        if not told and not pause.has_run(tool.name, await scenes.real_result(exam)):
            expect.fail("a granted tool to be run", pause.after.shown, "AAP-TOOL-02")
        expect.equal("results after permission was given", [pause.calls[tool.name]["toolCallId"]], told)


@requirement("AAP-SSE-05")
async def client_tools_have_no_result_event(exam: AapExamination) -> None:
    """For a client tool no tool_result is sent, neither with the call nor after the client has answered."""
    for mode in (await exam.agent()).streamed_modes:
        pause = await scenes.returned(exam, mode)
        told = [*pause.turn.named("tool_result"), *pause.after.named("tool_result")]
        expect.equal("tool_result events for a client tool", [], told)


@requirement("AAP-SSE-06")
async def a_plain_reply_stops_with_end_turn(exam: AapExamination) -> None:
    """In every mode the stop reason of a plain reply is end_turn."""
    for mode in (await exam.agent()).modes:
        turn = (await scenes.told(exam, mode))[0].turn
        turn.stopped("end_turn", owner="AAP-SSE-07" if turn.stop == "tool_use" else "AAP-SSE-06")


@requirement("AAP-SSE-06")
async def a_cut_reply_stops_with_max_tokens(exam: AapExamination) -> None:
    """In every mode the stop reason of a reply cut by its limit is max_tokens."""
    prompt = exam.profile.prompt("max_tokens")
    for mode in (await exam.agent()).modes:
        (await (await exam.open()).say(prompt, mode)).stopped("max_tokens", owner="AAP-SSE-06")


@requirement("AAP-SSE-06")
async def a_refusal_stops_with_refusal(exam: AapExamination) -> None:
    """In every mode the stop reason of a refusal by the model is refusal."""
    prompt = exam.profile.prompt("refuse")
    for mode in (await exam.agent()).modes:
        (await (await exam.open()).say(prompt, mode)).stopped("refusal", owner="AAP-SSE-06")


@requirement("AAP-SSE-07")
async def a_tool_use_stop_waits_for_the_client(exam: AapExamination) -> None:
    """A reply, and a call of a trusted tool, do not stop with tool_use; where a turn does, a call is left open."""
    takes_tools = (await exam.agent()).takes_client_tools
    for mode in (await exam.agent()).modes:
        for scene in await scenes.told(exam, mode):
            expect.that(scene.turn.stop != "tool_use", "no tool_use stop: nothing awaits the client", scene.turn.shown)
        pauses = [await scenes.decided(exam, mode, granted=True)]
        pauses += [await scenes.returned(exam, mode)] if takes_tools else []
        for pause in pauses:
            waiting = [call["name"] for call in pause.turn.open_calls]
            expect.equal("the calls left open", list(pause.calls), waiting)


@requirement("AAP-SSE-09")
async def a_failure_ends_the_stream_in_good_order(exam: AapExamination) -> None:
    """A turn that breaks in the middle ends with turn_stop and the reason error, in every streaming mode."""
    prompt = exam.profile.prompt("fail")
    for mode in (await exam.agent()).streamed_modes:
        turn = await (await exam.open()).say(prompt, mode, ends=await scenes.ends(exam, mode))
        turn.stopped("error")


@requirement("AAP-SSE-09")
async def a_failure_at_the_start_is_told_too(exam: AapExamination) -> None:
    """A turn that breaks before it says anything is either a 5xx or a stream that ends with the reason error."""
    message = {"role": "user", "content": exam.profile.prompt("fail_start")}
    for mode in (await exam.agent()).streamed_modes:
        talk = await exam.open()
        async with talk.stream([message], mode) as stream:
            if stream.status < 500:
                turn = await exam.reader.streamed(stream, mode, ends=await scenes.ends(exam, mode))
                turn.stopped("error")

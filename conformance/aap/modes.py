"""Section streaming, the modes: delta, message and none tell the same story."""

from typing import Any

from conformance.aap import scenes
from conformance.aap.examination import AapExamination
from conformance.aap.exchange import Exchange, of_messages, plain, results_too_late
from conformance.aap.scenes import FOUND
from conformance.aap.turn import TELLS, WHOLE, told_by
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable


@requirement(TELLS)
async def a_stream_tells_what_the_history_keeps(exam: AapExamination) -> None:
    """In every streaming mode what the client was told of a turn is what the full history has of it."""
    for mode in (await exam.agent()).streamed_modes:
        for place, scene in enumerate(await scenes.told(exam, mode)):
            told, kept = scene.turn.exchange.renamed(), of_messages(scene.kept).renamed()
            if told.said != kept.said:
                who = await scenes.culprit(exam, place, mode)
                expect.fail(f"the turn as the history has it ({mode}): {expect.show(kept.shown)}", told.shown, who)
            late = results_too_late(scene.turn.told, scene.kept)
            expect.equal(f"results that come after what the history has after them ({mode})", [], late)
            _expect_same_results(told, kept, mode)


def _expect_same_results(told: Exchange, kept: Exchange, mode: str) -> None:
    """Expect the results that are told and kept to be the same; whether they are is judged elsewhere."""
    both = sorted(set(told.results).intersection(kept.results))
    expect.equal(f"the results ({mode})", {name: kept.results[name] for name in both}, _only(told, both))


def _only(exchange: Exchange, names: list[str]) -> dict[str, Any]:
    return {name: exchange.results[name] for name in names}


@requirement(TELLS)
async def every_mode_tells_the_same(exam: AapExamination) -> None:
    """The same prompts in delta, message and none give the same texts, thoughts and calls."""
    if not exam.profile.repeatable:
        raise NotTestable("the profile says that replies are not repeatable")
    modes = (await exam.agent()).modes
    if len(modes) < 2:
        raise NotTestable("the agent declares one mode only")
    shown = [await scenes.told(exam, mode) for mode in modes]
    told = [[scene.turn.exchange.renamed() for scene in found] for found in shown]
    for place, replies in enumerate(zip(*told, strict=True)):
        for mode, found in zip(modes, shown, strict=True):
            if isinstance(found[place].found, list) and not scenes.agrees(found[place]):
                who = await scenes.culprit(exam, place, mode)
                expect.fail(f"the turn as the history has it ({mode})", found[place].turn.shown, who)
        said = [reply.said for reply in replies]
        wanted = max(replies, key=lambda reply: said.count(reply.said))
        for mode, reply in zip(modes, replies, strict=True):
            if reply.said != wanted.said:
                expected = f"the mode {mode} to tell what the others tell: {expect.show(wanted.shown)}"
                expect.fail(expected, reply.shown, told_by(mode, reply, wanted))


@requirement(TELLS)
async def a_resumed_turn_tells_what_the_history_keeps(exam: AapExamination) -> None:
    """In every mode parallel calls, and what follows their answers, are told as the full history has them."""
    for mode in (await exam.agent()).modes:
        pause = await scenes.parallel(exam, mode)
        mine = pause.calls[exam.profile.client_spec["name"]]["toolCallId"]
        results = {**pause.turn.exchange.results, **pause.after.exchange.results, mine: plain(FOUND)}
        told = Exchange(pause.turn.exchange.said + pause.after.exchange.said, results).renamed()
        kept = of_messages(pause.history).renamed()
        if told.said != kept.said:
            is_kept = await scenes.culprit(exam, -1, mode) != "AAP-HIST-03"
            who = told_by(mode, told, kept) if is_kept else "AAP-HIST-03"
            expect.fail(f"both turns as the history has them ({mode}): {expect.show(kept.shown)}", told.shown, who)
        _expect_same_results(told, kept, mode)


@requirement(WHOLE)
async def none_is_one_json_body(exam: AapExamination) -> None:
    """In the mode none the answer is application/json with the stop reason and the whole exchange, results included."""
    (await exam.agent()).needs_mode("none")
    for place, scene in enumerate(await scenes.told(exam, "none")):
        scene.turn.expect_readable()
        if not scenes.agrees(scene):
            who = await scenes.culprit(exam, place, "none")
            expect.fail("the whole exchange of the turn, as the history has it", scene.turn.shown, who)
    turn = (await scenes.told(exam, "none"))[-1].turn
    call = turn.call(exam.profile.server_tool("second_tool").name, WHOLE)["toolCallId"]
    if turn.stop == "tool_use":
        turn.stopped("end_turn")
    roles = [message["role"] for message in turn.messages]
    expect.equal("the order of call, result and reply", ["assistant", "tool", "assistant"], _without_repeats(roles))
    expect.equal("the calls with a result", [call], list(turn.exchange.results))


def _without_repeats(names: list[str]) -> list[str]:
    return [name for place, name in enumerate(names) if place == 0 or name != names[place - 1]]


@requirement(WHOLE)
async def none_has_the_results_of_granted_calls(exam: AapExamination) -> None:
    """In the mode none the answer to a permission holds the result of the call that was granted."""
    (await exam.agent()).needs_mode("none")
    pause = await scenes.decided(exam, "none", granted=True)
    (name,) = pause.calls
    if pause.has_run(name, await scenes.real_result(exam)):
        expect.subset("the calls with a result", [pause.calls[name]["toolCallId"]], pause.after.exchange.results)

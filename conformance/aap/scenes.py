"""Scenes: turns that several cases judge, brought about once in an examination."""

from dataclasses import dataclass
from typing import Any

from conformance.aap.conversation import Conversation, permission, result
from conformance.aap.examination import AapExamination
from conformance.aap.exchange import of_messages, plain
from conformance.aap.turn import ENDS, STREAMED, Turn, told_by
from conformance.kit import expect
from conformance.kit.expect import Failed, NotTestable

FOUND = "The word means: found."
REASON = "the examiners say no"
Kept = list[Any] | Failed | NotTestable


@dataclass(frozen=True)
class Scene:
    """One prompt, the turn that came of it, and what the history has after the user's message."""

    prompt: str
    turn: Turn
    found: Kept
    """The messages, or why there are none."""

    @property
    def kept(self) -> list[Any]:
        return _there(self.found)


@dataclass(frozen=True)
class Pause:
    """A turn that stopped for the client, its calls by the names of their tools, and the turn that went on."""

    turn: Turn
    calls: dict[str, dict[str, Any]]
    after: Turn
    found: Kept
    """The history in the end, or why there is none."""

    @property
    def history(self) -> list[Any]:
        return _there(self.found)

    @property
    def kept(self) -> list[Any]:
        """The messages that the history has after the last tool message; none if there is no history."""
        found = self.found if isinstance(self.found, list) else []
        last = max((place for place, item in enumerate(found) if item["role"] == "tool"), default=-1)
        return found[last + 1 :]

    def has_run(self, name: str, real: Any) -> bool:
        """Whether the history says that this tool was run, and gave what it really gives."""
        return real is not None and plain(self.result_of(name) or []) == plain(real)

    def result_of(self, name: str) -> Any:
        """The content of the first tool message that the history has for the call of this tool."""
        wanted = self.calls[name]["toolCallId"]
        kept = [item["content"] for item in self.history if item["role"] == "tool" and item["toolCallId"] == wanted]
        return kept[0] if kept else None


def _there(found: Kept) -> list[Any]:
    if isinstance(found, Failed):
        raise found.again()
    if isinstance(found, NotTestable):
        raise NotTestable(str(found))
    return found


async def _history(talk: Conversation) -> Kept:
    try:
        return await talk.history()
    except (Failed, NotTestable) as error:
        return error


# -- turns that end by themselves --------------------------------------------------------------------------------------


async def told(exam: AapExamination, mode: str) -> list[Scene]:
    """A plain reply, one with a thought (if the profile knows how), and one with a call of a trusted tool."""
    found: list[Scene] = await exam.http.observations.once(f"replies in the mode {mode}", lambda own: _told(own, mode))
    return found


async def _told(exam: AapExamination, mode: str) -> list[Scene]:
    tool, thinking = exam.profile.server_tool("second_tool"), exam.profile.prompts.thinking
    talk = await exam.open(tools={tool.name: True})
    prompts = [exam.profile.prompt("text"), *filter(None, [thinking]), tool.prompt]
    return [await _scene(talk, prompt, mode) for prompt in prompts]


async def _scene(talk: Conversation, prompt: str, mode: str) -> Scene:
    before = await _history(talk)
    turn = await talk.say(prompt, mode)
    now = await _history(talk)
    if isinstance(before, list) and isinstance(now, list):
        return Scene(prompt, turn, now[len(before) + 1 :])
    return Scene(prompt, turn, now if not isinstance(now, list) else before)


async def ends(exam: AapExamination, mode: str) -> str:
    """Who is to blame for a failed turn without turn_stop: nobody else, unless a plain reply has none either."""
    return "AAP-SSE-09" if (await told(exam, mode))[0].turn.named("turn_stop") else ENDS


async def culprit(exam: AapExamination, place: int, mode: str) -> str:
    """Who is to blame where a mode and the history differ in a reply: the history, if no mode agrees with it."""
    for other in (await exam.agent()).modes:
        if agrees((await told(exam, other))[place]):
            own = (await told(exam, mode))[place]
            if own.turn.is_overrun:
                return ENDS
            return told_by(mode, own.turn.exchange.renamed(), of_messages(own.kept).renamed())
    return "AAP-HIST-03"


def agrees(scene: Scene) -> bool:
    """Whether the texts, thoughts and calls that were told are those that are kept."""
    kept = of_messages(scene.kept).renamed().said
    try:
        return scene.turn.exchange.renamed().said == kept
    except Failed:
        return False


async def real_result(exam: AapExamination) -> Any:
    """What the second tool really gives, as the history has it of a call that was trusted; None if it has none."""
    mode = (await exam.agent()).usual_mode
    return next((item["content"] for item in (await told(exam, mode))[-1].kept if item["role"] == "tool"), None)


# -- turns that stop for the client ------------------------------------------------------------------------------------


def expect_asked(turn: Turn, call: dict[str, Any]) -> None:
    """Expect an untrusted tool not to have run before the client was asked."""
    is_open = call["toolCallId"] not in turn.exchange.results
    expect.that(is_open, f"the call of {call['name']} to wait for permission", turn.shown, "AAP-TOOL-02")


async def _post(talk: Conversation, answers: list[dict[str, Any]], mode: str) -> Turn:
    """The turn that comes of the answers; if they are refused, it may be that they name calls by ids that are none."""
    try:
        return await talk.post(answers, mode)
    except Failed:
        kept = await _history(talk)
        known = {item[1] for item in of_messages(kept).said if item[0] == "call"} if isinstance(kept, list) else set()
        strange = [answer["toolCallId"] for answer in answers if known and answer["toolCallId"] not in known]
        tells = "AAP-SSE-04" if mode in STREAMED else "AAP-NONE-01"
        expect.that(not strange, "calls with ids that the history knows", strange, tells)
        raise


async def decided(exam: AapExamination, mode: str, granted: bool) -> Pause:
    """An untrusted server tool that is granted or denied."""
    key = f"a call that is {'granted' if granted else 'denied'}, in the mode {mode}"
    found: Pause = await exam.http.observations.once(key, lambda own: _decided(own, mode, granted))
    return found


async def _decided(exam: AapExamination, mode: str, granted: bool) -> Pause:
    tool = exam.profile.server_tool("second_tool")
    talk = await exam.open(tools={tool.name: False})
    turn = (await talk.say(tool.prompt, mode)).stopped("tool_use", owner="AAP-TOOL-02")
    call = turn.call(tool.name)
    expect_asked(turn, call)
    after = await _post(talk, [permission(call, granted, None if granted else REASON)], mode)
    return Pause(turn, {tool.name: call}, after, await _history(talk))


async def returned(exam: AapExamination, mode: str) -> Pause:
    """A client tool whose result is returned."""
    key = f"a call of a client tool, in the mode {mode}"
    found: Pause = await exam.http.observations.once(key, lambda own: _returned(own, mode))
    return found


async def _returned(exam: AapExamination, mode: str) -> Pause:
    spec = exam.profile.client_spec
    talk = await exam.open(client_tools=[spec])
    turn = (await talk.say(exam.profile.prompt("client_tool"), mode)).stopped("tool_use", owner="AAP-TOOL-01")
    call = turn.call(spec["name"])
    after = await _post(talk, [result(call, FOUND)], mode)
    return Pause(turn, {spec["name"]: call}, after, await _history(talk))


async def parallel(exam: AapExamination, mode: str) -> Pause:
    """Calls of all three kinds at once: a trusted server tool, one that needs permission, and a client tool."""
    key = f"calls of three kinds, in the mode {mode}"
    found: Pause = await exam.http.observations.once(key, lambda own: _parallel(own, mode))
    return found


async def _parallel(exam: AapExamination, mode: str) -> Pause:
    one, other = exam.profile.server_tool("first_tool"), exam.profile.server_tool("second_tool")
    spec = exam.profile.client_spec
    talk = await exam.open_for_all_kinds()
    turn = await talk.say(exam.profile.prompt("parallel"), mode)
    calls = {name: turn.call(name) for name in (one.name, other.name, spec["name"])}
    turn.stopped("tool_use", owner="AAP-TOOL-02")
    expect_asked(turn, calls[other.name])
    after = await _post(talk, [result(calls[spec["name"]], FOUND), permission(calls[other.name], True)], mode)
    return Pause(turn, calls, after, await _history(talk))

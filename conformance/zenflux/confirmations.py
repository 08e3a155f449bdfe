"""Section confirmations: what the user is asked, and what comes of each answer."""

from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.answer import listed
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.line import Line
from conformance.zenflux.run import Run

ROOT = "/human-confirmation"
NEEDED = ("request_id", "session_id", "tool_name", "description", "options", "question", "confirmation_type")


async def _asked(line: Line, situation: str = "permit") -> Run:
    """A run that waits for the user."""
    run = await line.tell(situation)
    await run.until_note("confirmation_request")
    return run


async def _pending(exam: ZenfluxExamination) -> list[Any]:
    return [item.get("request_id") for item in listed(await exam.get(f"{ROOT}/pending"), "requests", "pending")]


@requirement("ZF-HTTP-3.3-01")
async def what_waits_is_listed(exam: ZenfluxExamination) -> None:
    """GET /human-confirmation/pending lists a request while it waits, and no longer when it is answered."""
    async with exam.line() as line:
        run = await _asked(line)
        name = run.request["request_id"]
        expect.that(name in await _pending(exam), "the request among the pending ones", name)
        await exam.post(f"{ROOT}/{run.session_id}", {"response": "approve"})
        expect.that(name not in await _pending(exam), "no answered request among the pending ones", name)
        await run.completed()


@requirement("ZF-HTTP-3.3-02")
async def an_approval_lets_the_tool_run(exam: ZenfluxExamination) -> None:
    """POST /human-confirmation/{session_id} with approve: the tool runs, its result is no error, the run goes on."""
    async with exam.line() as line:
        run = await _asked(line)
        await exam.post(f"{ROOT}/{run.session_id}", {"response": "approve", "metadata": {}})
        await run.completed()
    result = run.one("tool_result")
    expect.equal("is_error of the result", False, result.start["is_error"])
    expect.that(bool(run.text), "the agent to go on", run.names)


@requirement("ZF-HTTP-3.3-02")
async def a_rejection_keeps_the_tool_from_running(exam: ZenfluxExamination) -> None:
    """With reject the run goes on without a good result of the tool."""
    async with exam.line() as line:
        run = await _asked(line)
        await exam.post(f"{ROOT}/{run.session_id}", {"response": "reject"})
        await run.completed()
    errors = [block.start["is_error"] for block in run.blocks("tool_result")]
    expect.that(all(errors), "no good result of a rejected tool", errors)


@requirement("ZF-HTTP-3.3-02")
async def words_of_ones_own_are_an_answer(exam: ZenfluxExamination) -> None:
    """With any other words as the response the run goes on to its end; to whom nothing was asked, it is refused."""
    for situation in ("permit", "ask"):
        async with exam.line() as line:
            run = await _asked(line, situation)
            await exam.post(f"{ROOT}/{run.session_id}", {"response": "只看前十行, please"})
            await run.completed()
    answer = await exam.ask("POST", f"{ROOT}/{exam.stranger()}", {"response": "approve"})
    answer.refused("nobody was asked")


@requirement("ZF-HTTP-3.3-03")
async def a_request_can_be_looked_at(exam: ZenfluxExamination) -> None:
    """GET /human-confirmation/{request_id} shows the request that waits; an unknown one is refused."""
    async with exam.line() as line:
        run = await _asked(line)
        shown = await exam.get(f"{ROOT}/{run.request['request_id']}")
        expect.that(isinstance(shown, dict), "the request as data", shown)
        expect.equal("its request_id", run.request["request_id"], shown.get("request_id"))
    (await exam.ask("GET", f"{ROOT}/{exam.stranger()}")).refused("there is no such request")


@requirement("ZF-HTTP-3.3-04")
async def a_request_can_be_cancelled(exam: ZenfluxExamination) -> None:
    """DELETE /human-confirmation/{request_id} takes the request back; the run goes on without it and ends."""
    async with exam.line() as line:
        run = await _asked(line)
        name = run.request["request_id"]
        (await exam.ask("DELETE", f"{ROOT}/{name}")).done()
        await run.finish()
        expect.that(name not in await _pending(exam), "no cancelled request among the pending ones", name)
    errors = [block.start["is_error"] for block in run.blocks("tool_result")]
    expect.that(all(errors), "no good result of a cancelled tool", errors)


@requirement("G-ZF-24")
async def either_id_will_do(exam: ZenfluxExamination) -> None:
    """Session and request both name what waits; a response may be a string, a list or an object; twice is a 404."""
    for form, by_request in ((str, True), (list, False), (dict, True)):
        async with exam.line() as line:
            run = await _asked(line, "permit" if form is str else "ask")
            name, response = run.request["request_id"] if by_request else run.session_id, _answer(run.request, form)
            await exam.get(f"{ROOT}/{run.session_id}")
            await exam.post(f"{ROOT}/{name}", {"response": response})
            again = await exam.ask("POST", f"{ROOT}/{name}", {"response": response})
            again.missing("it was answered before")
            await run.completed()
    (await exam.ask("DELETE", f"{ROOT}/{exam.stranger()}")).missing("there is no such request")


def _answer(request: dict[str, Any], form: type) -> Any:
    """A string, a list or an object that answers: where questions are listed, each with its first option."""
    if form is str:
        return "approve"
    listed = request.get("questions")
    questions = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    answers = {str(item.get("id", place)): _first(item) for place, item in enumerate(questions)}
    if form is list:
        return list(answers.values()) or ["approve"]
    return answers or {"answer": "approve"}


def _first(question: dict[str, Any]) -> Any:
    options = question.get("options")
    first = options[0] if isinstance(options, list) and options else "approve"
    return [first] if "multiple" in str(question.get("type")) else first


@requirement("G-ZF-25")
async def a_request_can_be_shown_to_a_user(exam: ZenfluxExamination) -> None:
    """A confirmation_request also has session_id, question, confirmation_type, timeout, metadata and created_at."""
    async with exam.line() as line:
        run = await _asked(line)
        expect.subset("the request", [*NEEDED, "timeout", "metadata", "created_at"], run.request)
        expect.equal("its session", run.session_id, run.request["session_id"])
        kinds = ("yes_no", "single_choice", "multiple_choice", "form", "text_input")
        expect.member("confirmation_type", kinds, run.request["confirmation_type"])


@requirement("G-ZF-26")
async def the_stream_waits_with_the_user(exam: ZenfluxExamination) -> None:
    """While the request waits no further event comes, and the message is not ended."""
    async with exam.line() as line:
        run = await _asked(line)
        await _pending(exam)
        await line.ping()
        expect.equal("events while the user is asked", [], line.unread)
        await exam.post(f"{ROOT}/{run.session_id}", {"response": "reject"})
        await run.completed()

"""Section confirmations: what the user is asked, and what comes of each answer."""

from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.rest_answer import Answer, listed
from conformance.zenflux.sample_runs import CONFIRMATIONS, advised, approved, cancelled, given, rejected, to_its_end

DETAILS = ("tool_name", "description", "options")
NEEDED = ("request_id", "session_id", "tool_name", "description", "options", "question", "confirmation_type")


def _pending(answer: Answer) -> list[Any]:
    """The requests in a list of those that wait."""
    return [item.get("request_id") for item in listed(answer.done(), "requests", "pending", owner="ZF-HTTP-3.3-01")]


@requirement("ZF-HTTP-3.3-01")
async def what_waits_is_listed(exam: ZenfluxExamination) -> None:
    """GET /human-confirmation/pending lists a request while it waits, and no longer when it is answered."""
    found = await approved(exam)
    name = found.run.request["request_id"]
    expect.that(name in _pending(found.answers["pending"]), "the request among the pending ones", name)
    found.answers["posted"].done()
    expect.that(name not in _pending(found.answers["after"]), "no answered request among the pending ones", name)


@requirement("ZF-HTTP-3.3-02")
async def an_approval_lets_the_tool_run(exam: ZenfluxExamination) -> None:
    """POST /human-confirmation/{session_id} with approve: the tool runs, its result is no error, the run goes on."""
    found = await approved(exam)
    found.answers["posted"].done()
    result = found.run.one("tool_result")
    expect.equal("is_error of the result", False, result.start["is_error"])


@requirement("ZF-HTTP-3.3-02")
async def a_rejection_keeps_the_tool_from_running(exam: ZenfluxExamination) -> None:
    """With reject the run goes on without a good result of the tool."""
    found = await rejected(exam)
    is_taken = (await approved(exam)).answers["posted"].is_done
    found.answers["posted"].done("ZF-TYPE-08" if is_taken else None)
    errors = [block.start["is_error"] for block in found.run.blocks("tool_result")]
    expect.that(all(errors), "no good result of a rejected tool", errors)


@requirement("ZF-HTTP-3.3-02")
async def words_of_ones_own_are_an_answer(exam: ZenfluxExamination) -> None:
    """With any other words as the response the run goes on to its end."""
    for situation in given(exam, "permit", "ask"):
        found = await advised(exam, situation)
        found.answers["posted"].done()


@requirement("ZF-HTTP-3.3-03")
async def a_request_can_be_looked_at(exam: ZenfluxExamination) -> None:
    """GET /human-confirmation/{request_id} shows the request that waits, with the details that the user was asked."""
    found = await approved(exam)
    shown = found.answers["request"].done()
    expect.that(isinstance(shown, dict), "the request as data", shown)
    expect.equal("its request_id", found.run.request["request_id"], shown.get("request_id"))
    asked = {name: found.run.request[name] for name in DETAILS if name in shown and name in found.run.request}
    expect.equal("what the user was asked", asked, {name: shown[name] for name in asked})


@requirement("ZF-HTTP-3.3-04")
async def a_request_can_be_cancelled(exam: ZenfluxExamination) -> None:
    """DELETE /human-confirmation/{request_id} takes the request back; the run goes on without it and ends."""
    found = await cancelled(exam)
    found.answers["cancelled"].done()
    name = found.run.request["request_id"]
    expect.that(name not in found.answers["after"].reply.text, "no cancelled request among the pending ones", name)
    errors = [block.start["is_error"] for block in found.run.blocks("tool_result")]
    expect.that(all(errors), "no good result of a cancelled tool", errors)


@requirement("G-ZF-24")
async def either_id_will_do(exam: ZenfluxExamination) -> None:
    """Session and request both name what waits; a response may be a string, a list or an object; twice is a 404."""
    (await approved(exam)).answers["posted"].done()
    for form, by_request in ((str, True), (list, False), (dict, True)):
        async with exam.line() as line:
            run = await line.tell("permit" if form is str else "ask")
            await run.until_note("confirmation_request")
            name, response = run.request["request_id"] if by_request else run.session_id, _answer(run.request, form)
            with expect.owned("G-ZF-24"):
                shown = await exam.ask("GET", f"{CONFIRMATIONS}/{run.session_id}")
                expect.that(shown.is_done, "the request under the id of its session", shown.reply.told)
                posted = await exam.ask("POST", f"{CONFIRMATIONS}/{name}", {"response": response})
                owner = None if form is str or await _words_are_taken(exam) else "ZF-HTTP-3.3-02"
                expect.that(posted.is_done, f"{expect.show(response)} as a response", posted.reply.told, owner)
            again = await exam.ask("POST", f"{CONFIRMATIONS}/{name}", {"response": response})
            again.missing("it was answered before")
            await to_its_end(run)


async def _words_are_taken(exam: ZenfluxExamination) -> bool:
    """Whether words of one's own are an answer: if not, a refusal is not about the form."""
    return (await advised(exam, "permit")).answers["posted"].is_done


@requirement("G-ZF-24")
async def a_response_says_something(exam: ZenfluxExamination) -> None:
    """A confirmation without a response is refused, and the request still waits."""
    async with exam.line() as line:
        run = await line.tell("permit")
        await run.until_note("confirmation_request")
        answer = await exam.ask("POST", f"{CONFIRMATIONS}/{run.session_id}", {"metadata": {}})
        answer.refused("there is no response")


def _answer(request: dict[str, Any], form: type) -> Any:
    """A string, a list or an object that answers: where questions are listed, each with its first option."""
    if form is str:
        return "approve"
    asked = request.get("questions")
    questions = [item for item in asked if isinstance(item, dict)] if isinstance(asked, list) else []
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
    run = (await approved(exam)).run
    exam.schemas.fit("confirmation", run.request, "the content of a confirmation_request", "ZF-EV-18")
    expect.subset("the request", [*NEEDED, "timeout", "metadata", "created_at"], run.request)
    expect.equal("its session", run.session_id, run.request["session_id"])
    kinds = ("yes_no", "single_choice", "multiple_choice", "form", "text_input")
    expect.member("confirmation_type", kinds, run.request["confirmation_type"])


@requirement("G-ZF-26")
async def the_stream_waits_with_the_user(exam: ZenfluxExamination) -> None:
    """While the request waits no further event comes, and the message is not ended."""
    expect.equal("events while the user is asked", [], (await approved(exam)).meanwhile)

"""Section headless: one question, one result, and results of a given shape."""

from typing import Any

import jsonschema_rs

from conformance.blade.examination import BladeExamination
from conformance.blade.order import in_order
from conformance.kit import expect
from conformance.kit.case import requirement


@requirement("BL-FLOW-25")
async def a_headless_chat_tells_its_events(exam: BladeExamination) -> None:
    """With headless the events are those of any chat."""
    chat = await (await exam.open()).play("text", headless=True)
    in_order(chat)
    expect.that(bool(chat.replies) and bool(chat.replies[-1].streamed()), "text deltas", chat.shown)


@requirement("BL-FLOW-26")
async def a_headless_chat_has_a_result(exam: BladeExamination) -> None:
    """chat:end has the session, the status, the finish_reason, and the whole text as result.output."""
    talk = await exam.open()
    chat = await talk.play("text", headless=True)
    end = chat.end
    told = (end.get("session_id"), end["status"], end.get("finish_reason"))
    expect.equal("session_id, status and finish_reason", (talk.session, "completed", "completed"), told)
    expect.that(isinstance(end.get("result"), dict), "result to be an object", end)
    expect.equal("result.output", chat.text, end["result"].get("output"))


@requirement("BL-FLOW-27")
async def an_output_fits_the_schema_asked_for(exam: BladeExamination) -> None:
    """With output_schema result.output is an object that fits, and result.schema is the schema."""
    schema = exam.profile.schema_wanted
    chat = await (await exam.open()).play("json_reply", headless=True, output_schema=schema)
    result: Any = chat.ended("completed").end.get("result")
    expect.that(isinstance(result, dict), "result to be an object", chat.end)
    expect.that(isinstance(result.get("output"), dict), "result.output to be an object", result)
    problems = [error.message for error in jsonschema_rs.Draft202012Validator(schema).iter_errors(result["output"])]
    expect.equal("what keeps result.output from fitting the schema", [], problems)
    expect.equal("result.schema", schema, result.get("schema"))


@requirement("BL-FLOW-28")
async def a_session_can_be_asked_over_rest(exam: BladeExamination) -> None:
    """POST with a message answers what chat:end would say, and the history has the exchange."""
    session = await exam.session()
    path = exam.profile.rest_address.replace("{session_id}", session)
    body = await exam.asked("POST", path, {"message": exam.profile.prompt("text")}, (200, 201))
    exam.fit("event.chat-end", body, f"the answer to POST {path}")
    expect.equal("status", "completed", body["status"])
    result = body.get("result")
    output = result.get("output") if isinstance(result, dict) else None
    expect.that(isinstance(output, str) and bool(output), "result.output", body)
    kept = await exam.turns(f"/api/sessions/{session}")
    expect.equal("the roles of the history", ["user", "assistant"], [turn["role"] for turn in kept])
    expect.status(await exam.http.ask("POST", path.replace(session, exam.stranger()), {"message": "Hello"}), 404)

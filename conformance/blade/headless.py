"""Section headless: one question, one result, and results of a given shape."""

from typing import Any

import jsonschema_rs

from conformance.blade.damaged_members import sound
from conformance.blade.event_order import in_order
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import messages, scene
from conformance.blade.turn_sources import odd_one
from conformance.kit import expect
from conformance.kit.case import requirement


@requirement("BL-FLOW-25")
async def a_headless_chat_tells_its_events(exam: BladeExamination) -> None:
    """With headless the events are those of any chat."""
    chat = (await scene(exam, "text", headless=True)).chat()
    usual = (await scene(exam, "text")).chat()
    in_order(usual)
    wanted = "turn:patch" in usual.names
    expect.equal("patches, as without headless", wanted, "turn:patch" in chat.names)
    in_order(chat)


@requirement("BL-FLOW-26")
async def a_headless_chat_has_a_result(exam: BladeExamination) -> None:
    """chat:end has the session, the status, the finish_reason, and the whole text as result.output."""
    seen = await scene(exam, "text", headless=True)
    chat = seen.chat()
    end = chat.end
    told = (end.get("session_id"), end["status"], end.get("finish_reason"))
    expect.equal("session_id, status and finish_reason", (seen.session, "completed", "completed"), told)
    expect.that(isinstance(sound(end.get("result")), dict), "result to be an object", end)
    texts = {chat.text, chat.reply.streamed()} if odd_one(chat.reply, None) else {chat.text}
    expect.that(end["result"].get("output") in texts, f"result.output: {texts}", end["result"])


@requirement("BL-FLOW-27")
async def an_output_fits_the_schema_asked_for(exam: BladeExamination) -> None:
    """With output_schema result.output is an object that fits, and result.schema is a schema."""
    schema = exam.profile.schema_wanted
    chat = (await scene(exam, "json_reply", headless=True, output_schema=schema)).chat()
    result: Any = sound(chat.end.get("result"))
    expect.that(isinstance(result, dict), "result to be an object", chat.end, "BL-FLOW-26")
    expect.that(isinstance(result.get("output"), dict), "result.output to be an object", result)
    problems = [error.message for error in jsonschema_rs.Draft202012Validator(schema).iter_errors(result["output"])]
    expect.equal("what keeps result.output from fitting the schema", [], problems)
    expect.that(isinstance(result.get("schema"), dict), "result.schema to be an object", result)


@requirement("BL-FLOW-28")
async def a_session_can_be_asked_over_rest(exam: BladeExamination) -> None:
    """POST with a message answers what chat:end would say, and the history has the exchange."""
    session = await exam.session()
    path = exam.profile.rest_address.replace("{session_id}", session)
    body = await exam.asked("POST", path, {"message": exam.profile.prompt("text")}, (200, 201))
    body = exam.read("event.chat-end", body, f"the answer to POST {path}", "BL-FLOW-28")
    expect.equal("status", "completed", body["status"])
    result = body.get("result")
    expect.that(isinstance(result, dict), "a result", body)
    expect.that("output" in result, "result.output", result, "BL-FLOW-26")
    expect.that(isinstance(result["output"], str) and bool(result["output"]), "result.output", body)
    kept = messages(await exam.turns(f"/api/sessions/{session}"))
    expect.equal("the turns of the history", 2, len(kept))
    expect.status(await exam.http.ask("POST", path.replace(session, exam.stranger()), {"message": "Hello"}), 404)

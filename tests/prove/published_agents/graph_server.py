"""Two LangGraph graphs behind AG-UI, as their packages serve them; a Python that has these packages runs this file.

`/graph` has LangGraph's own state, `/agent` the state of CopilotKit. The model is a stand-in that needs no key.
"""

import sys
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
from copilotkit import CopilotKitState, LangGraphAGUIAgent
from fastapi import FastAPI
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt


class Parrot(BaseChatModel):
    """Streams `You said: …`; asked for the weather, calls the first tool; given a result, tells it."""

    tools: tuple[str, ...] = ()

    @property
    def _llm_type(self) -> str:
        return "parrot"

    def _generate(self, messages: Any, *given: Any, **named: Any) -> ChatResult:
        raise NotImplementedError("this model streams")

    async def _astream(self, messages: Any, *given: Any, **named: Any) -> AsyncIterator[ChatGenerationChunk]:
        last = messages[-1]
        if last.type == "human" and "weather" in last.text and self.tools:
            call = {"id": f"call_{len(messages)}", "name": self.tools[0], "args": '{"city": "Rome"}', "index": 0}
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))
            return
        for piece in ("You said: " if last.type == "human" else "The tool says: ", last.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))


async def talk(state: dict[str, Any]) -> dict[str, Any]:
    offered = tuple(tool["name"] for tool in state.get("copilotkit", {}).get("actions", ()))
    return {"messages": [await Parrot(tools=offered).ainvoke(state["messages"])]}


def approve(state: dict[str, Any]) -> dict[str, Any]:
    [*_, last] = (one.text for one in state["messages"] if one.type == "human")
    if "ask" not in last:
        return {}
    answer = interrupt({"question": "Shall I?", "options": ["yes", "no"]})
    return {"messages": [AIMessage(content=f"You answered: {answer}")]}


def graph(state: Any) -> Any:
    made = StateGraph(state)
    made.add_node("talk", talk)
    made.add_node("approve", approve)
    made.add_edge(START, "talk")
    made.add_edge("talk", "approve")
    made.add_edge("approve", END)
    return made.compile(checkpointer=MemorySaver())


app = FastAPI()
add_langgraph_fastapi_endpoint(app, LangGraphAgent(name="graph", graph=graph(MessagesState)), "/graph")
add_langgraph_fastapi_endpoint(app, LangGraphAGUIAgent(name="copilot", graph=graph(CopilotKitState)), "/agent")

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")

"""LangChain with tools: a call, its result, an answer; whole and streamed; structured answers."""
import functools
import operator
import os
import pathlib

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

from server import Server
from tool_loop import ASK, FAMILIES, NO_SPACES, TEMPLATES, TOOLS, check_arguments, needs_grammar

pytestmark = needs_grammar
CITY = {"title": "place", "description": "A place", "type": "object", "additionalProperties": False, "required": ["city"],
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}}}


@pytest.fixture(scope="module", params=sorted(FAMILIES))
def model(request):
    log = pathlib.Path(os.environ["LATTE_LOGS"]) / f"server-langchain-{request.param}.log"
    with Server(os.environ["LATTE"], log, "--chat-template", TEMPLATES / f"{request.param}.jinja") as server:
        yield ChatOpenAI(base_url=server.url + "/v1", api_key="none", model="tiny", temperature=0, max_tokens=400, max_retries=0,
                         logit_bias=NO_SPACES, extra_body={"chat_template_kwargs": FAMILIES[request.param]})


def results(message):
    for call in message.tool_calls:
        check_arguments(call["name"], call["args"])
    assert message.tool_calls and not message.invalid_tool_calls
    return [ToolMessage("sunny", tool_call_id=call["id"]) for call in message.tool_calls]


def test_call_result_answer(model):
    call = model.bind_tools(TOOLS, tool_choice="any", parallel_tool_calls=False).invoke(ASK)
    answer = model.bind_tools(TOOLS).bind(max_tokens=8).invoke([HumanMessage(ASK), call, *results(call)])
    assert answer.content


def test_stream(model):
    forced = model.bind_tools(TOOLS, tool_choice="any", parallel_tool_calls=False)
    call = functools.reduce(operator.add, forced.stream(ASK))
    assert [(c["name"], c["args"]) for c in call.tool_calls] == [(c["name"], c["args"]) for c in forced.invoke(ASK).tool_calls]
    assert "".join(chunk.content for chunk in model.bind_tools(TOOLS).bind(max_tokens=8).stream(
        [HumanMessage(ASK), call, *results(call)]))


@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
def test_structured_answer(model, method):
    assert model.with_structured_output(CITY, method=method).invoke(ASK)["city"] in ("Paris", "Rome")

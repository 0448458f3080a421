"""Conversations with tools: a call, its result, an answer; whole and streamed, one call and several."""
import json
import os
import pathlib

import pytest

from conftest import make_client
from server import Server
from tool_loop import ASK, FAMILIES, LINE_FEED, NO_END, NO_SPACES, TEMPLATES, TOOLS, check_arguments, function, needs_grammar

pytestmark = needs_grammar
PAGE = 64  # tokens of a page of the prefix cache


@pytest.fixture(scope="module", params=sorted(FAMILIES))
def family(request):
    """A client of a server with the chat format of a family, and the arguments of every request."""
    log = pathlib.Path(os.environ["LATTE_LOGS"]) / f"server-tools-{request.param}.log"
    with Server(os.environ["LATTE"], log, "--chat-template", TEMPLATES / f"{request.param}.jinja") as server:
        with make_client(server.url) as client:
            yield client, {"model": "tiny", "temperature": 0, "max_tokens": 400, "logit_bias": NO_SPACES,
                           "extra_body": {"chat_template_kwargs": FAMILIES[request.param]}}


def calls_of(message):
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]
    for name, arguments in calls:
        check_arguments(name, arguments)
    return calls


def with_results(message):
    """The conversation as a client continues it."""
    results = [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in message.tool_calls]
    return [{"role": "user", "content": ASK}, message.model_dump(exclude_none=True), *results]


def first(family, **more):
    client, common = family
    return client.chat.completions.create(messages=[{"role": "user", "content": ASK}], tools=TOOLS,
                                          **common | {"tool_choice": "required", "parallel_tool_calls": False} | more)


def test_call_result_answer(family):
    client, common = family
    call = first(family)
    message = call.choices[0].message
    assert call.choices[0].finish_reason == "tool_calls" and not message.content
    assert calls_of(message)
    answer = client.chat.completions.create(messages=with_results(message), tools=TOOLS, **common | {"max_tokens": 8})
    assert answer.choices[0].message.content
    # tiny is made to write what it would not, in other tokens than its tokenizer's: only the prompt is found for certain.
    assert answer.usage.prompt_tokens_details.cached_tokens >= call.usage.prompt_tokens // PAGE * PAGE


def test_stream_says_what_the_whole_answer_says(family):
    client, common = family
    whole = first(family)
    with client.chat.completions.stream(messages=[{"role": "user", "content": ASK}], tools=TOOLS, tool_choice="required",
                                        parallel_tool_calls=False, **common) as stream:
        pieces = [event for event in stream if event.type == "tool_calls.function.arguments.delta"]
        streamed = stream.get_final_completion().choices[0]
    assert streamed.finish_reason == "tool_calls" and len(pieces) > 1
    assert calls_of(streamed.message) == calls_of(whole.choices[0].message)
    answer = client.chat.completions.create(messages=with_results(streamed.message), tools=TOOLS, stream=True,
                                            **common | {"max_tokens": 8})
    assert "".join(chunk.choices[0].delta.content or "" for chunk in answer)


def test_several_calls(family):
    client, common = family
    bias = {token: value for token, value in NO_SPACES.items() if token != LINE_FEED} | NO_END
    message = first(family, parallel_tool_calls=True, max_tokens=700, logit_bias=bias,
                    extra_body=common["extra_body"] | {"min_tokens": 600}).choices[0].message
    message.tool_calls.pop()  # may be cut
    calls = calls_of(message)
    assert len(calls) >= 2
    del message.tool_calls[2:]
    answer = client.chat.completions.create(messages=with_results(message), tools=TOOLS, **common | {"max_tokens": 8})
    assert answer.choices[0].message.content
    assert len(first(family).choices[0].message.tool_calls) == 1


def test_the_named_function_is_called(family):
    for tool in TOOLS:
        name = tool["function"]["name"]
        choice = first(family, tool_choice={"type": "function", "function": {"name": name}}).choices[0]
        assert {called for called, _ in calls_of(choice.message)} == {name}


def test_without_a_choice_the_model_may_answer(family):
    choice = first(family, tool_choice="none", max_tokens=8).choices[0]
    assert choice.message.content and choice.message.tool_calls is None


def test_arguments_that_are_cut_are_said_to_be(family):
    text = function("write", "Writes a text", {"text": {"type": "string", "minLength": 2000}})
    client, common = family
    choice = client.chat.completions.create(messages=[{"role": "user", "content": ASK}], tools=[text], tool_choice="required",
                                            **common | {"max_tokens": 80}).choices[0]
    assert choice.finish_reason == "length"

"""What schemathesis changes in each request before it sends it (short answers, a model that the server has), and checks
of what it cannot know: every event of a stream, and that valid requests are answered."""
import copy
import functools
import json
import os

import jsonschema
import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.specs.openapi.checks import negative_data_rejection

from whole_numbers import with_integers

MODEL = "tiny"
TOKENS = 16
FRACTIONS = {"temperature", "top_p", "frequency_penalty", "presence_penalty"}


@functools.cache
def specified():
    """The components of the specification."""
    with open(os.environ["SPECIFICATION"], encoding="utf-8") as file:
        return json.load(file)["components"]


@functools.cache
def validator(path):
    """Of one event's data."""
    components = specified()
    if path == "/chat/completions":
        schema = {"$ref": "#/components/schemas/CreateChatCompletionStreamResponse"}
    elif path == "/responses":
        schema = {"$ref": "#/components/schemas/ResponseStreamEvent"}
    else:  # as the whole answer, but its end is still open
        schema = copy.deepcopy(components["schemas"]["CreateCompletionResponse"])
        schema["properties"]["choices"]["items"]["properties"]["finish_reason"]["enum"].append(None)
        schema["properties"]["choices"]["items"]["properties"]["finish_reason"]["type"] = ["string", "null"]
    return jsonschema.Draft202012Validator(schema | {"components": components})


@schemathesis.check
def stream_conformance(ctx, response, case):
    """Every event is JSON of the specification's type; the last says that the stream is whole."""
    if not response.headers.get("content-type", [""])[0].startswith("text/event-stream"):
        return
    lines = [line for line in response.content.decode().split("\n\n") if line and not line.startswith(":")]
    if case.operation.path == "/responses":
        check_typed_events(lines)
        return
    assert all(line.startswith("data: ") for line in lines), "expected events of one line that begins with 'data: '"
    assert lines and lines[-1] == "data: [DONE]", "expected the last event [DONE]"
    events = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert events, "expected at least one event"
    for event in events:
        assert "error" not in event, f"expected no error, found {event}"
        validator(case.operation.path).validate(event)
    ends = [choice["index"] for event in events for choice in event["choices"] if choice["finish_reason"]]
    assert sorted(ends) == list(range(len(ends))) and ends, f"expected one end of every answer, found {ends}"


def check_typed_events(lines):
    """Events of /responses: each has its name before its data, and a number; the last has the whole answer."""
    events = []
    for line in lines:
        name, _, data = line.partition("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}", f"expected the type of the event, found {name}"
        validator("/responses").validate(events[-1])
    assert [event["sequence_number"] for event in events] == list(range(len(events))), "expected numbers in order"
    assert events and events[-1]["type"] in ("response.completed", "response.incomplete"), "expected the end of the answer"


@schemathesis.check
def supported_requests_are_answered(ctx, response, case):
    """A valid request must not be refused, but for its length."""
    if os.environ["EVERYTHING_SUPPORTED"] != "1" or not case.meta or not case.meta.generation.mode.is_positive:
        return
    if response.status_code == 400:
        error = response.json()["error"]
        assert error["code"] == "context_length_exceeded", f"expected an answer, found {error}"


def is_history(messages, i):
    """Whether the parts of message i may have any type. Parts of a new question and of instructions are texts."""
    asked = len(messages) - 1
    while asked > 0 and messages[asked].get("role") in ("system", "developer"):
        asked -= 1
    return messages[i].get("role") == "assistant" or (messages[i].get("role") == "user" and i != asked)


def with_readable_history(body):
    """The body of a chat with a text for each part of its history that has another type."""
    body = copy.deepcopy(body)
    messages = body["messages"]
    for i, message in enumerate(messages):
        if is_history(messages, i) and isinstance(message.get("content"), list):
            message["content"] = [{"type": "text", "text": ""} if is_other_part(part) else part for part in message["content"]]
    return body


def is_other_part(part):
    return isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] != "text"


@schemathesis.check
def wrong_chats_are_refused(ctx, response, case):
    """negative_data_rejection, which does not know that parts of earlier turns may have any type."""
    if os.environ["EVERYTHING_SUPPORTED"] != "1" or case.operation.path != "/chat/completions":
        return
    try:
        negative_data_rejection(ctx, response, case)
    except AcceptedNegativeData:
        request = {"$ref": "#/components/schemas/CreateChatCompletionRequest", "components": specified()}
        readable = with_readable_history(case.body)
        if readable == case.body or not jsonschema.Draft202012Validator(request).is_valid(readable):
            raise


def is_count(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if not isinstance(body, dict):
        return
    # Another name is a 404 for any body, so nothing else would be tested. A name of a wrong type stays.
    if isinstance(body.get("model"), str):
        body["model"] = MODEL
    # A wrong limit stays too.
    responses = case.operation.path == "/responses"
    names = ("max_output_tokens",) if responses else ("max_tokens", "max_completion_tokens")
    limits = [name for name in names if body.get(name) is not None]
    if not limits:
        body[names[0]] = TOKENS
    for name in limits:
        if is_count(body[name]) or body[name] == -1:  # two different limits would contradict each other; -1 is none
            body[name] = TOKENS if len(limits) > 1 or body[name] == -1 else min(body[name], TOKENS)
    body |= {name: with_integers(value) for name, value in body.items() if name not in FRACTIONS}
    # The specification does not say that one of these needs the other.
    if not responses and is_count(body.get("top_logprobs")) and body["top_logprobs"] > 0 and body.get("logprobs") in (None, False):
        body["logprobs"] = True

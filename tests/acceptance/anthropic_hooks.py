"""What schemathesis changes in each request of Anthropic's API before it sends it, and a check of streams."""
import json

import schemathesis

from whole_numbers import with_integers

MODEL = "tiny"
TOKENS = 16


@schemathesis.check
def stream_conformance(ctx, response, case):
    """Every event has the name of its type; the last ends the message."""
    if not response.headers.get("content-type", [""])[0].startswith("text/event-stream"):
        return
    events = [event.split("\n") for event in response.content.decode().split("\n\n") if event]
    assert events, "expected at least one event"
    for name, data in events:
        kind = json.loads(data.removeprefix("data: "))["type"]
        assert name == f"event: {kind}" and kind != "error", f"expected an event of its name, found {name}, {data}"
    assert events[0][0] == "event: message_start" and events[-1][0] == "event: message_stop"


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if not isinstance(body, dict):
        return
    # Another name is a 404 for any body, so nothing else would be tested. A name of a wrong type stays.
    if isinstance(body.get("model"), str):
        body["model"] = MODEL
    limit = body.get("max_tokens")
    if isinstance(limit, (int, float)) and not isinstance(limit, bool):
        body["max_tokens"] = min(limit, TOKENS)
    body |= with_integers({name: value for name, value in body.items() if name not in ("temperature", "top_p")})

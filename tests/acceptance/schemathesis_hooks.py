"""What schemathesis changes in each request before it sends it: short answers, and a model that the server has."""
import schemathesis

MODEL = "tiny"
TOKENS = 16


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool)


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if not isinstance(body, dict):
        return
    # Another name is a 404 for any body, so nothing else would be tested. A name of a wrong type stays.
    if isinstance(body.get("model"), str):
        body["model"] = MODEL
    # A wrong limit stays too.
    limits = [name for name in ("max_tokens", "max_completion_tokens") if body.get(name) is not None]
    if not limits:
        body["max_tokens"] = TOKENS
    for name in limits:
        if is_count(body[name]) and body[name] > TOKENS:
            body[name] = TOKENS

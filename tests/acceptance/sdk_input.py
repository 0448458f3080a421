"""A plugin of pytest for the SDK's own tests. They create responses without an input, which their mock server takes and OpenAI's
service refuses, as Latte does. This adds one, and a limit, so that the types of answers are tested."""
import functools

from openai.resources.responses import AsyncResponses, Responses


def with_input(create):
    @functools.wraps(create)
    def wrapper(self, **arguments):
        return create(self, **{"input": "Once upon a time", "max_output_tokens": 16, **arguments})
    return wrapper


for resource in (Responses, AsyncResponses):
    resource.create = with_input(resource.create)

"""LiteLLM's client: an answer, a stream, a text completion, an error."""
import os

import litellm
import pytest

ARGUMENTS = {"api_base": os.environ["LATTE_URL"] + "/v1", "api_key": "none", "max_tokens": 12, "temperature": 0, "num_retries": 0}
ASK = [{"role": "user", "content": "A story about a duck."}]


def test_answer():
    answer = litellm.completion(model="openai/tiny", messages=ASK, **ARGUMENTS)
    assert answer.choices[0].message.content and answer.usage.completion_tokens == 12


def test_stream():
    chunks = list(litellm.completion(model="openai/tiny", messages=ASK, stream=True, **ARGUMENTS))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == litellm.completion(model="openai/tiny", messages=ASK, **ARGUMENTS).choices[0].message.content


def test_completion():
    answer = litellm.text_completion(model="text-completion-openai/tiny", prompt="Once upon a time", **ARGUMENTS)
    assert answer.choices[0].text


def test_error():
    with pytest.raises(litellm.NotFoundError):
        litellm.completion(model="openai/none", messages=ASK, **ARGUMENTS)

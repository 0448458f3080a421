"""LangChain's client: an answer, a stream, a batch."""
import os

import pytest
from langchain_openai import ChatOpenAI, OpenAI

URL = os.environ["LATTE_URL"] + "/v1"


@pytest.fixture
def model():
    return ChatOpenAI(base_url=URL, api_key="none", model="tiny", max_tokens=12, temperature=0, max_retries=0)


def test_answer(model):
    message = model.invoke([("system", "You tell stories."), ("human", "A story about a duck.")])
    assert message.content and message.usage_metadata["output_tokens"] == 12


def test_stream(model):
    chunks = list(model.stream("A story about a duck."))
    assert len(chunks) > 5
    assert "".join(chunk.content for chunk in chunks) == model.invoke("A story about a duck.").content


def test_batch(model):
    assert all(message.content for message in model.batch(["A duck", "A fox", "A bear"]))


def test_completion():
    assert OpenAI(base_url=URL, api_key="none", model="tiny", max_tokens=8, max_retries=0).invoke("Once upon a time")

"""/v1/messages as a user of the anthropic package sees it."""
import json

import anthropic
import pytest

from conftest import URL

MODEL = "tiny"
ASK = [{"role": "user", "content": "Tell a story about a duck."}]
# Begins each answer with thoughts, as the templates of reasoning models do.
THINKING = ("{% for message in messages %}{{ message['content'] }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<think>\n' }}{% endif %}")
GREEDY = {"temperature": 0}  # the package's functions have no such argument any more
TOOLS = [{"name": "get_weather", "description": "The weather in a city",
          "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}]


def make_messages_client(url=URL, **options):
    return anthropic.Anthropic(**{"base_url": url, "api_key": "none", "max_retries": 0, "timeout": 60,
                                  "_strict_response_validation": True} | options)


@pytest.fixture(scope="module")
def messages():
    with make_messages_client() as client:
        yield client.messages


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def test_message(messages):
    answer = messages.create(model=MODEL, messages=ASK, max_tokens=12, extra_body=GREEDY)
    assert answer.type == "message" and answer.id.startswith("msg_") and answer.role == "assistant" and answer.model == MODEL
    assert [block.type for block in answer.content] == ["text"] and answer.content[0].text
    assert answer.stop_reason == "max_tokens" and answer.stop_sequence is None
    assert answer.usage.output_tokens == 12


def test_stream_builds_the_same_message(messages):
    arguments = {"model": MODEL, "messages": ASK, "max_tokens": 40, "extra_body": GREEDY}
    whole = messages.create(**arguments)
    with messages.stream(**arguments) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == text_of(final) == text_of(whole)
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens
    # The second request finds the prompt in the cache.
    tokens = [message.usage.input_tokens + message.usage.cache_read_input_tokens for message in (whole, final)]
    assert tokens[0] == tokens[1] == messages.count_tokens(model=MODEL, messages=ASK).input_tokens


def test_order_of_events(messages):
    kinds = [event.type for event in messages.create(model=MODEL, messages=ASK, max_tokens=8, extra_body=GREEDY, stream=True)]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(kinds[2:-3]) == {"content_block_delta"}


def test_stop_sequence(messages):
    arguments = {"model": MODEL, "messages": ASK, "max_tokens": 100, "extra_body": GREEDY}
    whole = text_of(messages.create(**arguments))
    stop = whole.split()[5]
    for answer in (messages.create(**arguments, stop_sequences=["zebra", stop]),
                   messages.stream(**arguments, stop_sequences=["zebra", stop]).__enter__().get_final_message()):
        assert answer.stop_reason == "stop_sequence" and answer.stop_sequence == stop
        assert text_of(answer) == whole[:whole.index(stop)]


def test_conversation_with_blocks(messages):
    """What Claude Code sends around a question; the answer comes back as it was given."""
    arguments = {"model": MODEL, "max_tokens": 20, "metadata": {"user_id": "u"},
                 "thinking": {"type": "enabled", "budget_tokens": 1024},
                 "system": [{"type": "text", "text": "x-anthropic-billing-header: cch=1a2b3;"},
                            {"type": "text", "text": "Tell stories.", "cache_control": {"type": "ephemeral"}}],
                 "extra_body": GREEDY | {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}}
    ask = [{"role": "user", "content": [{"type": "text", "text": "About a duck.", "cache_control": {"type": "ephemeral"}}]}]
    first = messages.create(messages=ask, **arguments)
    again = messages.create(messages=[*ask, first.to_param(), {"role": "user", "content": "And a pig."}], **arguments)
    assert again.content[0].text
    plain = messages.create(model=MODEL, max_tokens=20, extra_body=GREEDY, system="Tell stories.",
                            messages=[{"role": "user", "content": "About a duck."}])
    assert text_of(plain) == text_of(first)


def test_histories_of_other_models(messages):
    """Blocks that the model cannot read stay in a conversation for ever."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    search = [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "ducks"}},
              {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
                  {"type": "web_search_result", "title": "Ducks", "url": "http://d", "encrypted_content": "x"}]},
              {"type": "text", "text": "I found ducks."}]
    asked = [{"role": "user", "content": [image, {"type": "text", "text": "What is this?"}]},
             {"role": "assistant", "content": search}, *ASK]
    answer = messages.create(model=MODEL, messages=asked, max_tokens=4, extra_body=GREEDY)
    assert text_of(answer)
    counted = messages.count_tokens(model=MODEL, messages=asked).input_tokens
    assert counted == answer.usage.input_tokens + answer.usage.cache_read_input_tokens


def test_reasoning_is_a_block(serve, tmp_path):
    template = tmp_path / "template.jinja"
    template.write_text(THINKING)
    with make_messages_client(serve("--chat-template", template).url) as client:
        arguments = {"model": MODEL, "messages": ASK, "max_tokens": 20, "extra_body": GREEDY}
        whole = client.messages.create(**arguments)
        with client.messages.stream(**arguments) as stream:
            final = stream.get_final_message()
    for message in (whole, final):
        assert message.content[0].type == "thinking" and message.content[0].thinking and message.content[0].signature
    assert whole.content == final.content


def test_beta_client(messages):
    with make_messages_client() as client:
        answer = client.beta.messages.create(model=MODEL, messages=ASK, max_tokens=4, betas=["context-management-2025-06-27"])
        assert answer.content[0].text
        assert client.beta.messages.count_tokens(model=MODEL, messages=ASK).input_tokens > 4


def check_json(error, status, kind):
    body = error.response.json()
    assert error.status_code == status
    assert body["type"] == "error" and body["error"]["type"] == kind and body["error"]["message"]
    assert error.response.headers["X-Request-Id"]


@pytest.mark.parametrize("fields, word", [
    ({"extra_body": {"temperature": 1.5}}, "temperature"), ({"extra_body": {"top_p": 2}}, "top_p"), ({"stop_sequences": [""]}, "stop_sequences.0"),
    ({"tools": TOOLS}, "tools"), ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools.0"),
    ({"tool_choice": {"type": "any"}}, "tool_choice"), ({"extra_body": {"no_such_field": 1}}, "no_such_field"),
    ({"messages": [{"role": "user", "content": [{"type": "no_such_block"}]}]}, "messages.0.content.0"),
    ({"messages": [*ASK, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "9", "content": "r"}]}]}, "'9'"),
    ({"messages": [*ASK, {"role": "assistant", "content": "Once"}]}, "messages.1.content"),
    ({"messages": [{"role": "user", "content": "word " * 5000}]}, "prompt is too long: ")])
def test_what_is_wrong_is_named(messages, fields, word):
    with pytest.raises(anthropic.BadRequestError) as caught:
        messages.create(**{"model": MODEL, "messages": ASK, "max_tokens": 4} | fields)
    check_json(caught.value, 400, "invalid_request_error")
    assert word in caught.value.message


def test_unknown_model_and_path(messages, http):
    for send in (lambda: messages.create(model="claude-none", messages=ASK, max_tokens=4),
                 lambda: messages.count_tokens(model="claude-none", messages=ASK)):
        with pytest.raises(anthropic.NotFoundError) as caught:
            send()
        check_json(caught.value, 404, "not_found_error")
    assert http.get("/v1/messages").json()["error"]["type"] == "invalid_request_error"
    assert http.post("/v1/messages/batches", json={}).json()["error"]["type"] == "not_found_error"


def test_keys(serve):
    url = serve("--api-key", "secret").url
    for options in ({"api_key": "secret"}, {"api_key": None, "auth_token": "secret"}, {"api_key": "other", "default_headers": {"Authorization": "Bearer secret"}}):
        with make_messages_client(url, **options) as client:
            assert client.messages.count_tokens(model=MODEL, messages=ASK).input_tokens > 0
    with make_messages_client(url, api_key="wrong") as client, pytest.raises(anthropic.AuthenticationError) as caught:
        client.messages.create(model=MODEL, messages=ASK, max_tokens=4)
    check_json(caught.value, 401, "authentication_error")


def test_large_body(serve):
    url = serve("--max-body-bytes", 2000).url
    with make_messages_client(url) as client, pytest.raises(anthropic.APIStatusError) as caught:
        client.messages.create(model=MODEL, messages=[{"role": "user", "content": "word " * 1000}], max_tokens=4)
    assert caught.value.status_code == 413
    assert caught.value.response.json()["error"]["type"] == "request_too_large"


def test_raw_stream(http):
    """Every event has the name of its type; the arguments of the query have no effect."""
    with http.stream("POST", "/v1/messages?beta=true", json={"model": MODEL, "messages": ASK, "max_tokens": 3, "stream": True},
                     headers={"anthropic-version": "2023-06-01"}) as reply:
        assert reply.headers["Content-Type"].startswith("text/event-stream")
        events = [event for event in reply.read().decode().split("\n\n") if event]
    for event in events:
        name, data = event.split("\n")
        assert name == "event: " + json.loads(data.removeprefix("data: "))["type"]

"""/v1/chat/completions as a user of the openai package sees it."""
import math

MODEL = "tiny"
ASK = [{"role": "user", "content": "Tell a story about a duck."}]
# Begins each answer with thoughts, as the templates of reasoning models do.
THINKING = ("{% for message in messages %}{{ message['content'] }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<think>\n' }}{% endif %}")


def test_answer(client):
    answer = client.chat.completions.create(model=MODEL, messages=ASK, max_tokens=12, temperature=0)
    choice = answer.choices[0]
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-")
    assert choice.message.role == "assistant" and choice.message.content and choice.finish_reason == "length"
    assert choice.message.refusal is None and choice.message.tool_calls is None
    assert answer.usage.completion_tokens == 12


def test_stream_gives_the_content_of_the_answer(client):
    arguments = {"model": MODEL, "messages": ASK, "max_completion_tokens": 40, "seed": 3}
    whole = client.chat.completions.create(**arguments).choices[0]
    chunks = list(client.chat.completions.create(**arguments, stream=True))
    assert chunks[0].object == "chat.completion.chunk" and chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.message.content
    assert chunks[-1].choices[0].finish_reason == whole.finish_reason


def test_stream_helper_with_usage(client):
    arguments = {"model": MODEL, "messages": ASK, "temperature": 0, "stop": "."}
    with client.chat.completions.stream(**arguments, stream_options={"include_usage": True}) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    whole = client.chat.completions.create(**arguments)
    assert kinds.count("content.delta") >= 5
    assert final.usage.completion_tokens == whole.usage.completion_tokens
    assert final.choices[0].message.content == whole.choices[0].message.content


def test_logprobs(client):
    choice = client.chat.completions.create(model=MODEL, messages=ASK, max_tokens=5, temperature=0, logprobs=True,
                                            top_logprobs=4).choices[0]
    tokens = choice.logprobs.content
    assert len(tokens) == 5 and choice.logprobs.refusal is None
    assert b"".join(bytes(token.bytes) for token in tokens).decode() == choice.message.content
    for token in tokens:
        assert len(token.top_logprobs) == 4
        assert token.top_logprobs[0].token == token.token
        assert sum(math.exp(other.logprob) for other in token.top_logprobs) <= 1 + 1e-5


def test_logprobs_in_a_stream(client):
    arguments = {"model": MODEL, "messages": ASK, "max_tokens": 8, "temperature": 0, "logprobs": True, "top_logprobs": 2}
    whole = client.chat.completions.create(**arguments).choices[0].logprobs.content
    streamed = [token for chunk in client.chat.completions.create(**arguments, stream=True)
                if chunk.choices[0].logprobs for token in chunk.choices[0].logprobs.content]
    assert streamed == whole


def test_n(client):
    answer = client.chat.completions.create(model=MODEL, messages=ASK, n=4, max_tokens=20, temperature=1, seed=2)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert len({choice.message.content for choice in answer.choices}) > 1


def test_content_parts(client):
    """Parts are lines of one text."""
    parts = [{"role": "user", "content": [{"type": "text", "text": "Tell a story"}, {"type": "text", "text": "about a duck."}]}]
    text = [{"role": "user", "content": "Tell a story\nabout a duck."}]
    arguments = {"model": MODEL, "max_tokens": 10, "temperature": 0}
    answers = [client.chat.completions.create(messages=messages, **arguments) for messages in (text, parts)]
    assert answers[0].choices[0].message.content == answers[1].choices[0].message.content
    assert answers[0].usage.prompt_tokens == answers[1].usage.prompt_tokens


def test_roles(client):
    answer = client.chat.completions.create(model=MODEL, max_tokens=4, messages=[
        {"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "A story!"}])
    assert answer.usage.completion_tokens <= 4


def test_unicode(client, http):
    text = "Grüße, 你好, 🦆👩‍👩‍👧, e\u0301, \u202eright to left, \U0010ffff"
    prompt = http.post("/apply-template", json={"messages": [{"role": "user", "content": text}]}).json()["prompt"]
    assert text in prompt
    ids = http.post("/tokenize", json={"prompt": text, "add_special_tokens": False}).json()["tokens"]
    assert http.post("/detokenize", json={"tokens": ids}).json()["prompt"] == text
    echoed = client.completions.create(model=MODEL, prompt=text, max_tokens=1, echo=True).choices[0].text
    assert echoed.startswith(text)
    message = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": text}], max_tokens=8)
    assert message.choices[0].message.content.encode()


def test_bytes_of_a_character_come_together(client):
    """At this temperature many tokens are single bytes of characters."""
    def arguments(salt):  # a cached prefix may change the last bits of the logits
        return {"model": MODEL, "messages": [{"role": "user", "content": "🦆" * 20}], "max_tokens": 60, "temperature": 2, "seed": 4,
                "extra_body": {"ignore_eos": True, "cache_salt": salt}}
    chunks = client.chat.completions.create(**arguments("stream"), stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == client.chat.completions.create(**arguments("whole")).choices[0].message.content


def test_reasoning_content(serve, tmp_path):
    from conftest import make_client
    template = tmp_path / "thinking.jinja"
    template.write_text(THINKING, encoding="utf-8")
    with make_client(serve("--chat-template", template).url) as client:
        arguments = {"model": MODEL, "messages": ASK, "max_tokens": 12, "temperature": 0}
        message = client.chat.completions.create(**arguments).choices[0].message
        assert message.reasoning_content and not message.content
        deltas = [chunk.choices[0].delta for chunk in client.chat.completions.create(**arguments, stream=True) if chunk.choices]
        streamed = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
        assert streamed.strip() == message.reasoning_content.strip()
        assert not any(delta.content for delta in deltas)

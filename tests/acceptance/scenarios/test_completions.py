"""/v1/completions as a user of the openai package sees it."""
import pytest

STORY = "Once upon a time, there was a brave duck named"
MODEL = "tiny"


def test_text_and_usage(client):
    answer = client.completions.create(model=MODEL, prompt=STORY, max_tokens=8, temperature=0)
    choice = answer.choices[0]
    assert answer.object == "text_completion" and answer.model == MODEL and answer.id.startswith("cmpl-")
    assert choice.text and choice.finish_reason == "length" and choice.logprobs is None
    assert answer.usage.completion_tokens == 8
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 8


def test_default_of_max_tokens_is_16(client):
    answer = client.completions.create(model=MODEL, prompt=STORY, temperature=0, extra_body={"ignore_eos": True})
    assert answer.usage.completion_tokens == 16


def test_stream_gives_the_text_of_the_answer(client):
    arguments = {"model": MODEL, "prompt": STORY, "max_tokens": 40, "seed": 3}
    whole = client.completions.create(**arguments).choices[0]
    chunks = list(client.completions.create(**arguments, stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole.text
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason] == [whole.finish_reason]
    assert len(chunks) > 10 and len({chunk.id for chunk in chunks}) == 1


def test_stream_with_usage(client):
    chunks = list(client.completions.create(model=MODEL, prompt=STORY, max_tokens=8, stream=True, temperature=0,
                                            stream_options={"include_usage": True}))
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 8


def test_n(client):
    answer = client.completions.create(model=MODEL, prompt=STORY, n=3, max_tokens=20, seed=5, temperature=1)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.text for choice in answer.choices}) > 1
    assert answer.usage.completion_tokens <= 60


def test_n_in_a_stream(client):
    texts = {}
    for chunk in client.completions.create(model=MODEL, prompt=STORY, n=3, max_tokens=20, seed=5, temperature=1, stream=True):
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + choice.text
    answer = client.completions.create(model=MODEL, prompt=STORY, n=3, max_tokens=20, seed=5, temperature=1)
    assert texts == {choice.index: choice.text for choice in answer.choices}


def test_logprobs(client):
    choice = client.completions.create(model=MODEL, prompt=STORY, max_tokens=6, temperature=0, logprobs=3).choices[0]
    found = choice.logprobs
    assert "".join(found.tokens) == choice.text
    assert len(found.tokens) == len(found.token_logprobs) == len(found.top_logprobs) == len(found.text_offset) == 6
    for token, logprob, top in zip(found.tokens, found.token_logprobs, found.top_logprobs):
        assert len(top) == 3 and logprob <= 0
        assert top[token] == logprob == max(top.values())  # temperature 0 takes the likeliest
    assert [choice.text[offset:].startswith(token) for token, offset in zip(found.tokens, found.text_offset)] == [True] * 6


def test_echo_with_logprobs(client):
    answer = client.completions.create(model=MODEL, prompt=STORY, max_tokens=1, temperature=0, logprobs=1, echo=True)
    choice, found = answer.choices[0], answer.choices[0].logprobs
    assert choice.text.startswith(STORY)
    assert len(found.tokens) == answer.usage.prompt_tokens + 1
    assert found.token_logprobs[0] is None and all(value <= 0 for value in found.token_logprobs[1:])


def test_echo_in_a_stream(client):
    chunks = client.completions.create(model=MODEL, prompt=STORY, max_tokens=4, temperature=0, echo=True, stream=True)
    text = "".join(chunk.choices[0].text for chunk in chunks)
    assert text == client.completions.create(model=MODEL, prompt=STORY, max_tokens=4, temperature=0, echo=True).choices[0].text
    assert text.startswith(STORY)


def test_prompt_of_token_ids(client, http):
    ids = http.post("/tokenize", json={"prompt": STORY}).json()["tokens"]
    from_ids = client.completions.create(model=MODEL, prompt=ids, max_tokens=10, temperature=0)
    from_text = client.completions.create(model=MODEL, prompt=STORY, max_tokens=10, temperature=0)
    assert from_ids.choices[0].text == from_text.choices[0].text
    assert from_ids.usage.prompt_tokens == from_text.usage.prompt_tokens == len(ids)
    assert http.post("/detokenize", json={"tokens": ids[1:]}).json()["prompt"] == STORY


def test_list_of_prompts(client):
    prompts = [STORY, "3+4=", "Long ago, a little fox"]
    answer = client.completions.create(model=MODEL, prompt=prompts, n=2, max_tokens=10, seed=1)
    assert [choice.index for choice in answer.choices] == list(range(6))
    alone = client.completions.create(model=MODEL, prompt=prompts[1], n=2, max_tokens=10, seed=1)
    assert [c.text for c in answer.choices[2:4]] == [c.text for c in alone.choices]


def test_list_of_lists_of_token_ids(client, http):
    lists = [http.post("/tokenize", json={"prompt": text}).json()["tokens"] for text in (STORY, "3+4=")]
    answer = client.completions.create(model=MODEL, prompt=lists, max_tokens=5, temperature=0)
    assert len(answer.choices) == 2 and answer.usage.prompt_tokens == sum(map(len, lists))


def test_seed(client):
    def text(seed):
        return client.completions.create(model=MODEL, prompt=STORY, max_tokens=30, temperature=1, seed=seed).choices[0].text
    assert text(7) == text(7)
    assert len({text(seed) for seed in range(4)}) > 1


@pytest.mark.parametrize("is_stream", [False, True])
def test_stop(client, is_stream):
    whole = client.completions.create(model=MODEL, prompt=STORY, max_tokens=60, temperature=0).choices[0].text
    stop = whole[10:14]
    arguments = {"model": MODEL, "prompt": STORY, "max_tokens": 60, "temperature": 0, "stop": ["never this", stop]}
    if is_stream:
        chunks = list(client.completions.create(**arguments, stream=True))
        text, finish = "".join(chunk.choices[0].text for chunk in chunks), chunks[-1].choices[0].finish_reason
    else:
        choice = client.completions.create(**arguments).choices[0]
        text, finish = choice.text, choice.finish_reason
    assert text == whole[:whole.index(stop)] and finish == "stop"


def test_cached_tokens(client):
    prompt = "A long beginning. " * 40
    client.completions.create(model=MODEL, prompt=prompt, max_tokens=1)
    usage = client.completions.create(model=MODEL, prompt=prompt, max_tokens=1).usage
    assert 0 < usage.prompt_tokens_details.cached_tokens < usage.prompt_tokens
    salted = client.completions.create(model=MODEL, prompt=prompt, max_tokens=1, extra_body={"cache_salt": "other"}).usage
    assert salted.prompt_tokens_details.cached_tokens == 0

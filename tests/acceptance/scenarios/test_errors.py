"""Refusals: the exception class of the openai package, the status, and OpenAI's JSON."""
import openai
import pytest

from conftest import make_client

MODEL = "tiny"
ASK = [{"role": "user", "content": "Hello"}]


def check_json(error, status, code=None, param=None):
    body = error.response.json()["error"]
    assert error.status_code == status
    assert set(body) == {"message", "type", "param", "code"} and body["message"]
    if code:
        assert error.code == code
    if param:
        assert error.param == param


@pytest.mark.parametrize("param, value", [("temperature", -1), ("top_p", 2), ("n", 0), ("max_tokens", -2), ("logprobs", 1000),
                                          ("stop", [""]), ("presence_penalty", "high"), ("logit_bias", {"x": 1})])
def test_values_out_of_range(client, param, value):
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model=MODEL, prompt="x", **{param: value})
    check_json(caught.value, 400)
    assert param in caught.value.message


@pytest.mark.parametrize("fields", [
    {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
    {"response_format": {"type": "yaml"}}, {"modalities": ["audio"], "audio": {"voice": "x", "format": "wav"}},
    {"web_search_options": {}}, {"extra_body": {"no_such_field": 1}}])
def test_what_is_not_done_is_refused(client, fields):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=ASK, max_tokens=4, **fields)
    check_json(caught.value, 400)


def test_image_part(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}])
    check_json(caught.value, 400)


def test_unknown_model(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="gpt-none", messages=ASK)
    check_json(caught.value, 404, "model_not_found", "model")
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("gpt-none")
    check_json(caught.value, 404)


@pytest.mark.parametrize("is_stream", [False, True])
def test_long_prompt(client, is_stream):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "word " * 5000}], stream=is_stream)
    check_json(caught.value, 400, "context_length_exceeded")


def test_api_key(serve, http):
    url = serve("--api-key", "secret-1", "--api-key", "secret-2").url
    for key in ("secret-1", "secret-2"):
        with make_client(url, api_key=key) as client:
            assert [model.id for model in client.models.list()] == [MODEL]
    # Azure's client sends the header api-key.
    with openai.AzureOpenAI(base_url=url + "/v1", api_key="secret-1", api_version="1", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == [MODEL]
    for key in ("wrong", "secret-", "secret-11"):
        with make_client(url, api_key=key) as client, pytest.raises(openai.AuthenticationError) as caught:
            client.chat.completions.create(model=MODEL, messages=ASK)
        check_json(caught.value, 401, "invalid_api_key")
    assert http.get(url + "/health").status_code == 200
    assert http.get(url + "/metrics").status_code == 401


def test_full_queue(serve, wait_until, http):
    """429 with Retry-After; a client that waits and tries again gets its answer."""
    url = serve("--max-sequences", 1, "--max-queued-requests", 1, "--context", 4096).url
    with make_client(url) as client:
        endless = {"model": MODEL, "messages": ASK, "max_tokens": 4000, "extra_body": {"ignore_eos": True}}
        running = client.chat.completions.create(**endless, stream=True)
        next(running)
        waiting = client.chat.completions.create
        import threading
        thread = threading.Thread(target=lambda: waiting(model=MODEL, messages=ASK, max_tokens=1))
        thread.start()
        wait_until(lambda: http.get(url + "/requests").json()["running"] == 2)
        with pytest.raises(openai.RateLimitError) as caught:
            client.chat.completions.create(model=MODEL, messages=ASK, max_tokens=1)
        check_json(caught.value, 429)
        assert int(caught.value.response.headers["retry-after"]) >= 1
        running.close()
        answer = client.with_options(max_retries=5).chat.completions.create(model=MODEL, messages=ASK, max_tokens=1)
        assert answer.usage.completion_tokens == 1
        thread.join()


def test_broken_bodies(http):
    def status(content, kind="application/json", path="/v1/chat/completions"):
        reply = http.post(path, content=content, headers={"Content-Type": kind})
        assert set(reply.json()["error"]) == {"message", "type", "param", "code"}
        return reply.status_code
    good = b'{"model": "tiny", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}'
    for broken in (b"", b"{", b"[]", b"null", good[:-1], good + b"}", b"\xff\xfe", b'{"model": "\xff"}', b"[" * 100_000,
                   b'{"model": "tiny", "messages": "' + b"a" * 100_000):
        assert status(broken) == 400
    assert status(good, "text/plain") == 415
    assert status(good, "application/x-www-form-urlencoded") == 415
    assert status(b" " * (33 << 20)) == 413


def test_wrong_methods_and_paths(http):
    for method, path, status in (("GET", "/v1/chat/completions", 405), ("DELETE", "/v1/models", 405), ("POST", "/metrics", 405),
                                 ("GET", "/v1/nothing", 404), ("POST", "/v1/embeddings", 404), ("GET", "/../etc/passwd", 404)):
        reply = http.request(method, path)
        assert (reply.status_code, path) == (status, path)
        assert reply.json()["error"]["message"]
        assert status != 405 or reply.headers["allow"]
    for path in ("/v1/v1/models", "//v1/models", "/openai/v1/models"):
        reply = http.get(str(http.base_url).rstrip("/") + path)
        assert reply.status_code == 404 and "did you mean /v1/models?" in reply.json()["error"]["message"], path
    assert http.get("/models").json() == http.get("/v1/models").json()


def test_sites(http):
    """DNS rebinding: a page of another site names another host or origin."""
    assert http.get("/v1/models", headers={"Host": "evil.example"}).status_code == 403
    assert http.get("/v1/models", headers={"Origin": "https://evil.example"}).status_code == 403
    assert "access-control-allow-origin" not in http.get("/v1/models").headers

"""Time and many clients: cancelling, timeouts, parallel streams, request ids, the other paths."""
import asyncio
import json
import os
import socket
import threading
import time
import urllib.parse

import openai
import pytest

from conftest import URL, make_client

MODEL = "tiny"
ASK = [{"role": "user", "content": "Tell a story."}]
# Some seconds of work, until the context is full.
LONG = {"model": MODEL, "prompt": "Once", "max_tokens": 1000, "n": 8, "extra_body": {"ignore_eos": True}}


def connect():
    place = urllib.parse.urlsplit(URL)
    return socket.create_connection((place.hostname, place.port), timeout=60)


def test_closing_a_stream_frees_the_engine(client, outcome):
    stream = client.completions.create(**LONG, stream=True, extra_headers={"X-Request-Id": "close-1"})
    for _ in range(3):
        next(stream)
    stream.close()
    ended = outcome("close-1")
    assert ended["result"] == "cancelled" and ended["generated_tokens"] < 8000


def test_leaving_without_a_stream_frees_the_engine(http, outcome):
    body = json.dumps({k: v for k, v in LONG.items() if k != "extra_body"} | {"ignore_eos": True}).encode()
    with connect() as link:
        link.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Request-Id: leave-1\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(body) + body)
        while not any(r["id"] == "leave-1" and r["generated_tokens"] for r in http.get("/requests").json()["requests"]):
            time.sleep(0.01)
    ended = outcome("leave-1")
    assert ended["result"] == "cancelled" and ended["generated_tokens"] < 8000


def test_timeout_of_the_client(client, outcome):
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.2).completions.create(**LONG | {"n": 32}, extra_headers={"X-Request-Id": "timeout-1"})
    assert outcome("timeout-1")["result"] == "cancelled"


def test_slow_head_and_body_time_out():
    for sent in (b"POST /v1/comple", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                     b"Content-Length: 100\r\n\r\n{"):
        with connect() as link:
            link.sendall(sent)
            began, answer = time.monotonic(), b""
            while part := link.recv(4096):
                answer += part
            assert time.monotonic() - began < 30  # the server under test allows 5 s
            assert answer == b"" or b" 408 " in answer.split(b"\r\n")[0]


def test_32_streams_at_once():
    async def one(client, i):
        text, last = "", None
        stream = await client.chat.completions.create(model=MODEL, messages=ASK, max_tokens=64, seed=i, stream=True, temperature=1,
                                                      stream_options={"include_usage": True}, extra_body={"ignore_eos": True})
        async for chunk in stream:
            text += "".join(choice.delta.content or "" for choice in chunk.choices)
            last = chunk
        return text, last.usage.completion_tokens

    async def all_of_them():
        async with openai.AsyncOpenAI(base_url=URL + "/v1", api_key="none", max_retries=0) as client:
            return await asyncio.gather(*(one(client, i) for i in range(32)))

    together = asyncio.run(all_of_them())
    assert [tokens for _, tokens in together] == [64] * 32
    # The same bytes whatever else runs.
    with make_client() as client:
        for i in (0, 17):
            alone = client.chat.completions.create(model=MODEL, messages=ASK, max_tokens=64, seed=i, temperature=1,
                                                   extra_body={"ignore_eos": True})
            assert alone.choices[0].message.content == together[i][0]


def test_request_id(client, http):
    reply = client.completions.with_raw_response.create(model=MODEL, prompt="x", max_tokens=1,
                                                        extra_headers={"X-Request-Id": "mine-42"})
    assert reply.headers["x-request-id"] == "mine-42" and reply.parse()._request_id == "mine-42"
    made = client.completions.with_raw_response.create(model=MODEL, prompt="x", max_tokens=1).headers["x-request-id"]
    assert len(made) >= 16 and made != "mine-42"
    for name, path, method in (("mine-43", "/v1/nothing", "GET"), ("mine-44", "/v1/completions", "GET"),
                               ("mine-45", "/v1/completions", "POST")):
        reply = http.request(method, path, headers={"X-Request-Id": name})
        assert reply.status_code >= 400 and reply.headers.get("x-request-id") == name


def test_models(client):
    models = list(client.models.list())
    assert [model.id for model in models] == ["tiny", "gpt-6-astra", "gpt-3.5-turbo-instruct", "claude-opus-5-5"]
    assert models[0].max_model_len == 1024 and models[0].object == "model"
    assert client.models.retrieve("tiny").id == "tiny"


def test_other_paths(http):
    assert http.get("/health").status_code == http.get("/ready").status_code == 200
    assert http.get("/version").json()["version"]
    assert http.get("/props").json()["max_model_len"] == 1024
    metrics = http.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    for name in ("vllm:num_requests_running", "vllm:time_to_first_token_seconds_bucket", "vllm:generation_tokens_total"):
        assert name in metrics.text


def test_no_text_in_the_live_view_and_the_log(client, http):
    secret = "pineapple-7261"
    client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": secret}], max_tokens=2, user=secret)
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": secret}], temperature=-1)
    assert secret not in http.get("/requests").text
    log = os.path.join(os.environ["LATTE_LOGS"], "server.log")
    if os.path.exists(log):
        with open(log, encoding="utf-8") as file:
            assert secret not in file.read()


def test_slow_reader_does_not_delay_others(client):
    body = json.dumps({"model": MODEL, "prompt": "Once", "max_tokens": 1000, "stream": True, "n": 8, "logprobs": 20,
                       "ignore_eos": True}).encode()
    with connect() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(body) + body)
        link.recv(1000)  # and reads no more
        for _ in range(5):
            answer = client.chat.completions.create(model=MODEL, messages=ASK, max_tokens=4)
            assert answer.usage.completion_tokens == 4


def test_shutdown_drains(serve, http):
    """SIGTERM: a running stream ends whole, new requests are refused, the process ends with status 0."""
    server = serve()
    with make_client(server.url) as client:
        stream = client.completions.create(model=MODEL, prompt="Once", max_tokens=200, stream=True, extra_body={"ignore_eos": True},
                                           stream_options={"include_usage": True})
        next(stream)
        ended = []
        thread = threading.Thread(target=lambda: ended.append(server.stop()))
        thread.start()
        usage = list(stream)[-1].usage
    assert usage.completion_tokens == 200
    thread.join()
    assert ended == [0]
    with pytest.raises(OSError):
        connect_to = urllib.parse.urlsplit(server.url)
        socket.create_connection((connect_to.hostname, connect_to.port), timeout=5).close()

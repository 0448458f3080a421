"""Clients of the server under test, and further servers for what needs other flags."""
import contextlib
import itertools
import os
import pathlib
import time

import httpx
import openai
import pytest

from server import Server

URL = os.environ["LATTE_URL"]
numbers = itertools.count(1)


def make_client(url=URL, **options):
    return openai.OpenAI(**{"base_url": url + "/v1", "api_key": "none", "max_retries": 0, "timeout": 60} | options)


@pytest.fixture(scope="session")
def client():
    with make_client() as client:
        yield client


@pytest.fixture(scope="session")
def http():
    """Requests that no well-behaved client sends."""
    with httpx.Client(base_url=URL, timeout=60, trust_env=False) as client:
        yield client


@pytest.fixture
def serve():
    """serve(flags…): a server with these flags, until the test ends."""
    with contextlib.ExitStack() as servers:
        def start(*flags):
            log = pathlib.Path(os.environ["LATTE_LOGS"]) / f"server-scenario-{next(numbers)}.log"
            return servers.enter_context(Server(os.environ["LATTE"], log, *flags))
        yield start


@pytest.fixture(scope="session")
def wait_until():
    """wait_until(condition): its first value that is true, within 30 seconds."""
    def wait(condition):
        deadline = time.monotonic() + 30
        while not (value := condition()):
            assert time.monotonic() < deadline, "the condition does not become true"
            time.sleep(0.02)
        return value
    return wait


@pytest.fixture(scope="session")
def outcome(http, wait_until):
    """outcome(id): how the request ended, from the live view, once the engine has let go of it."""
    def find(request_id):
        return wait_until(lambda: next((r for r in http.get("/requests").json()["finished"] if r["id"] == request_id), None))
    return find

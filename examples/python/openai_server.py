"""Starts an OpenAI-compatible server and asks it. Usage: openai_server.py [MODEL]"""
import json
import sys
import urllib.request

import latte_mla

with latte_mla.Server(sys.argv[1] if len(sys.argv) > 1 else "tiny") as server:
    print(f"{server.url}/v1")  # base_url of any OpenAI client
    body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 16, "seed": 1}
    request = urllib.request.Request(f"{server.url}/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        print(json.load(answer)["choices"][0]["message"]["content"])

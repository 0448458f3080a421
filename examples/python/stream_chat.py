"""A conversation in the terminal, word by word. Usage: stream_chat.py [MODEL] [QUESTION]"""
import sys

import latte_mla

model = sys.argv[1] if len(sys.argv) > 1 else "tiny"
question = sys.argv[2] if len(sys.argv) > 2 else "Tell me a story."

with latte_mla.LLM(model) as llm:
    messages = [{"role": "user", "content": question}]
    for delta in llm.stream(messages, latte_mla.SamplingParams(max_tokens=64, seed=1)):
        print(delta.reasoning + delta.text, end="", flush=True)
    print()

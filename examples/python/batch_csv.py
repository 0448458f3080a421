"""Fills a CSV file's rows with answers that match a JSON schema. Usage: batch_csv.py IN.csv OUT.csv [MODEL]

IN.csv has a column "text". OUT.csv has the columns "mood" and "length" too. All rows are computed together.
Needs a build with xgrammar.
"""
import csv
import json
import sys

import latte_mla

SCHEMA = {
    "type": "object",
    "properties": {"mood": {"enum": ["happy", "sad", "neutral"]}, "length": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["mood", "length"],
    "additionalProperties": False,
}

with open(sys.argv[1], newline="") as file:
    rows = list(csv.DictReader(file))

with latte_mla.LLM(sys.argv[3] if len(sys.argv) > 3 else "tiny") as llm:
    params = latte_mla.SamplingParams(json_schema=SCHEMA, max_tokens=512, seed=1)
    answers = llm.generate([f"{row['text']}\nMood and length as JSON: " for row in rows], params)

with open(sys.argv[2], "w", newline="") as file:
    table = csv.DictWriter(file, ["text", "mood", "length"])
    table.writeheader()
    for row, answer in zip(rows, answers):
        table.writerow({"text": row["text"], **json.loads(answer.text)})

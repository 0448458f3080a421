"""/v1/responses as a user of the openai package sees it."""
import openai
import pytest

MODEL = "tiny"
ASK = "Tell a story about a duck."


def test_answer(client):
    answer = client.responses.create(model=MODEL, input=ASK, max_output_tokens=12, temperature=0)
    assert answer.id.startswith("resp_") and answer.status == "incomplete"
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert answer.usage.output_tokens == 12 and answer.usage.total_tokens == answer.usage.input_tokens + 12
    chat = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": ASK}], max_tokens=12, temperature=0)
    assert answer.output_text == chat.choices[0].message.content


def test_stream_helper_gives_the_answer(client):
    arguments = {"model": MODEL, "input": ASK, "temperature": 0, "instructions": "Be brief.", "metadata": {"a": "b"},
                 "extra_body": {"stop": "."}}
    with client.responses.stream(**arguments) as stream:
        events = list(stream)
        final = stream.get_final_response()
    whole = client.responses.create(**arguments)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text
    assert final.output_text == whole.output_text and final.status == whole.status == "completed"
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert final.metadata == {"a": "b"} and final.instructions == "Be brief." and final.store is False


def test_items_of_an_answer_are_sent_back(client):
    first = client.responses.create(model=MODEL, input=ASK, max_output_tokens=20, temperature=0)
    turn = {"role": "user", "content": [{"type": "input_text", "text": "And a cat?"}]}
    again = client.responses.create(model=MODEL, input=[{"role": "user", "content": ASK}, *first.output, turn], max_output_tokens=8,
                                    temperature=0)
    messages = [{"role": "user", "content": ASK}, {"role": "assistant", "content": first.output_text},
                {"role": "user", "content": "And a cat?"}]
    chat = client.chat.completions.create(model=MODEL, messages=messages, max_tokens=8, temperature=0)
    assert again.output_text == chat.choices[0].message.content
    assert again.usage.input_tokens == chat.usage.prompt_tokens


@pytest.mark.parametrize("field", [{"previous_response_id": "resp_1"}, {"background": True}, {"truncation": "auto"}])
def test_state_is_refused_by_name(client, field):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=MODEL, input=ASK, **field)
    assert caught.value.param == next(iter(field)) and caught.value.code == "unsupported"


def test_nothing_is_stored(client):
    with pytest.raises(openai.NotFoundError, match="stores no responses"):
        client.responses.retrieve("resp_1")
    with pytest.raises(openai.NotFoundError, match="stores no responses"):
        client.responses.delete("resp_1")

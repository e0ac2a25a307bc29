"""Responses behind /openai/v1, by the `openai` package: its models, its streaming helper, its parsing, its exceptions."""

import json
import unittest

import openai
from pydantic import BaseModel

from desk import desk
from provider import ARGUMENTS, BROKEN, TEXT, TOOL_CALL

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
TOOL = {"type": "function", "name": "weather", "parameters": PARAMETERS, "strict": True}


class Weather(BaseModel):
    city: str
    degrees: int


def client(key=None, retries=0):
    return openai.OpenAI(base_url=desk().openai_url, api_key=key or desk().key, max_retries=retries)


def ask(model="fake/whole", key=None, retries=0, **more):
    return client(key, retries).responses.create(**{"model": model, "input": "Hello", **more})


class Answers(unittest.TestCase):
    def test_plain(self):
        answer = ask(instructions="Be kind.", temperature=0.5)
        self.assertEqual((answer.output_text, answer.status, answer.model), (TEXT, "completed", "fake/whole"))
        self.assertEqual((answer.usage.input_tokens, answer.usage.output_tokens), (7, 3))
        self.assertEqual(answer.usage.input_tokens_details.cached_tokens, 0)
        self.assertEqual((answer.instructions, answer.temperature), ("Be kind.", 0.5))
        # Strict, unlike what the client does itself: nothing that its model needs may be missing.
        type(answer).model_validate(answer.model_dump(warnings=False))

    def test_tools(self):
        first = ask("fake/called:responses", tools=[TOOL])
        call = first.output[0]
        self.assertEqual((call.type, call.name, call.call_id), ("function_call", "weather", "call_1"))
        self.assertEqual(call.arguments, TOOL_CALL["function"]["arguments"])
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "7 degrees"}
        conversation = [{"role": "user", "content": "Hello"}, *first.output, result]
        self.assertEqual(ask("fake/called:responses", input=conversation, tools=[TOOL]).output_text, TEXT)
        asked = desk().provider.calls("called:responses")
        function = {"name": "weather", "parameters": PARAMETERS, "strict": True}
        self.assertEqual(asked[0]["tools"], [{"type": "function", "function": function}])
        self.assertEqual(asked[1]["messages"][1]["tool_calls"], [TOOL_CALL])
        self.assertEqual(asked[1]["messages"][2], {"role": "tool", "tool_call_id": "call_1", "content": "7 degrees"})

    def test_schema(self):
        answer = client().responses.parse(model="fake/whole:responses", input="Hello", text_format=Weather)
        self.assertEqual(answer.output_parsed, Weather(city="Oslo", degrees=7))
        asked = desk().provider.calls("whole:responses")[0]["response_format"]
        self.assertEqual((asked["type"], asked["json_schema"]["name"]), ("json_schema", "Weather"))


class Streams(unittest.TestCase):
    def test_text(self):
        events = list(ask(stream=True))
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        self.assertEqual((events[0].type, events[-1].type), ("response.created", "response.completed"))
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        self.assertEqual((text, events[-1].response.output_text), (TEXT, TEXT))
        for event in events:
            type(event).model_validate(event.model_dump(warnings=False))

    def test_collected(self):
        with client().responses.stream(model="fake/tools", input="Hello", tools=[TOOL]) as stream:
            snapshots = [event.snapshot for event in stream if event.type == "response.function_call_arguments.delta"]
            call = stream.get_final_response().output[0]
        self.assertEqual(snapshots[-1], "".join(ARGUMENTS))
        self.assertEqual(json.loads(call.arguments), {"city": "Oslo"})

    def test_one_that_breaks_says_so(self):
        for script in BROKEN:
            with self.subTest(script):
                *_, last = ask(f"fake/{script}:responses", retries=2, stream=True)
                self.assertEqual(last.type, "response.failed")
                self.assertIn("the provider fake", last.response.error.message)
                self.assertEqual(last.response.output_text, "Hel")
                with self.assertRaises(RuntimeError):
                    with client().responses.stream(model=f"fake/{script}", input="Hello") as stream:
                        stream.get_final_response()


class Errors(unittest.TestCase):
    def expect(self, kind, code, sentence, **call):
        for stream in (False, True):
            with self.subTest(code, stream=stream):
                with self.assertRaises(kind) as raised:
                    ask(stream=stream, **call)
                self.assertEqual(raised.exception.code, code)
                self.assertIn(sentence, str(raised.exception))

    def test_people_see_what_is_wrong(self):
        conversation = "send the whole conversation in `input`"
        self.expect(openai.AuthenticationError, "invalid_api_key", "Invalid or missing API key", key="sk-nothing")
        self.expect(openai.NotFoundError, "model_not_found", "configured providers", model="nobody/whole")
        self.expect(openai.BadRequestError, "unsupported_parameter", conversation, previous_response_id="resp_1")
        self.expect(openai.BadRequestError, "unsupported_parameter", "`web_search`", tools=[{"type": "web_search"}])
        self.expect(openai.BadRequestError, "context_length_exceeded", "maximum context length", model="fake/too-long")
        self.expect(openai.InternalServerError, "provider_error", "the provider fake", model="fake/status-500")

    def test_completions_at_the_same_door(self):
        for model, sentence in (("nobody/whole", "configured providers"), ("fake/too-long", "maximum context length")):
            with self.assertRaises(openai.APIStatusError) as raised:
                client().chat.completions.create(model=model, messages=[{"role": "user", "content": "Hello"}])
            self.assertIn(sentence, str(raised.exception))

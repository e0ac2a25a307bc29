"""LangChain's `ChatOpenAI`: on top of the `openai` package, with its own reading of usage, tools and streams."""

import unittest

import openai
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from desk import desk
from provider import BROKEN, TEXT


class Weather(BaseModel):
    """Tells the weather of a city."""

    city: str
    degrees: int


def model(name="fake/whole", key=None):
    return ChatOpenAI(model=name, base_url=desk().base_url, api_key=key or desk().key, max_retries=0)


class LangChain(unittest.TestCase):
    def test_invoke(self):
        answer = model().invoke("Hello")
        self.assertEqual(answer.content, TEXT)
        self.assertEqual(answer.response_metadata["finish_reason"], "stop")
        self.assertEqual((answer.usage_metadata["input_tokens"], answer.usage_metadata["output_tokens"]), (7, 3))

    def test_stream(self):
        whole = None
        for chunk in model().stream("Hello", stream_usage=True):
            whole = chunk if whole is None else whole + chunk
        self.assertEqual(whole.content, TEXT)
        self.assertEqual(whole.usage_metadata["total_tokens"], 10)

    def test_tools(self):
        tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
        bound = model("fake/tools").bind_tools([tool])
        whole = None
        for chunk in bound.stream("Hello"):
            whole = chunk if whole is None else whole + chunk
        for answer in (bound.invoke("Hello"), whole):
            call = answer.tool_calls[0]
            self.assertEqual((call["name"], call["args"]), ("weather", {"city": "Oslo"}))

    def test_schema(self):
        structured = model("fake/whole:langchain").with_structured_output(Weather, method="json_schema")
        self.assertEqual(structured.invoke("Hello"), Weather(city="Oslo", degrees=7))
        asked = desk().provider.calls("whole:langchain")[0]
        self.assertEqual(asked["response_format"]["type"], "json_schema")

    def test_errors(self):
        spent = desk().make_key("--per-minute", "1")
        model(key=spent).invoke("Hello")
        for kind, chat in (
            (openai.AuthenticationError, model(key="sk-nothing")),
            (openai.PermissionDeniedError, model(key=desk().make_key("--address", "192.0.2.0/24"))),
            (openai.RateLimitError, model(key=spent)),
            (openai.NotFoundError, model("nobody/whole")),
            (openai.BadRequestError, model("fake/status-400")),
            (openai.InternalServerError, model("fake/status-401")),
        ):
            with self.assertRaises(kind):
                chat.invoke("Hello")
            with self.assertRaises(kind):
                list(chat.stream("Hello"))

    def test_a_stream_that_breaks_raises(self):
        for script in BROKEN:
            with self.subTest(script):
                text = ""
                with self.assertRaises(openai.APIError):
                    for chunk in model(f"fake/{script}").stream("Hello"):
                        text += chunk.content
                self.assertEqual(text, "Hel")

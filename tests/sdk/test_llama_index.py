"""LlamaIndex: its class for servers of this API, which has its own reading of streams, tools and embeddings, and an
index on top of both. It runs in an environment of its own, see requirements-llama-index.txt."""

import asyncio
import unittest

try:
    from llama_index.core import Document, VectorStoreIndex
except ModuleNotFoundError as missing:
    raise unittest.SkipTest("has an environment of its own") from missing

import openai
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

from desk import desk
from provider import BROKEN, TEXT

HELLO = [ChatMessage(role="user", content="Hello")]


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


def model(name="fake/whole", key=None, **more):
    where = {"api_base": desk().openai_url, "api_key": key or desk().key, "max_retries": 0}
    return OpenAILike(model=name, is_chat_model=True, is_function_calling_model=True, **where, **more)


def vectors():
    return OpenAILikeEmbedding(model_name="fake/vectors", api_base=desk().openai_url, api_key=desk().key, max_retries=0)


class LlamaIndex(unittest.TestCase):
    def test_text(self):
        answer = model().chat(HELLO)
        self.assertEqual((answer.message.content, answer.raw.usage.total_tokens), (TEXT, 10))
        self.assertEqual(model().complete("Hello").text, TEXT)
        self.assertEqual("".join(chunk.delta for chunk in model().stream_chat(HELLO)), TEXT)

    def test_tools(self):
        told = []

        def weather(city: str) -> str:
            """Tells the weather of a city."""
            told.append(city)
            return "7 degrees"

        async def run():
            return await FunctionAgent(tools=[weather], llm=model("fake/called:llama-index")).run("Hello")

        self.assertEqual((str(asyncio.run(run())), told), (TEXT, ["Oslo"]))

    def test_schema(self):
        structured = model("fake/whole:llama-index", should_use_structured_outputs=True)
        answer = structured.structured_predict(Weather, PromptTemplate("Hello"))
        self.assertEqual(answer, Weather(city="Oslo", degrees=7))
        asked = desk().provider.calls("whole:llama-index")[0]
        self.assertEqual(asked["response_format"]["type"], "json_schema")

    def test_an_index(self):
        self.assertEqual(vectors().get_text_embedding_batch(["four", "seventh"]), [[4.0, 1.0], [7.0, 1.0]])
        index = VectorStoreIndex.from_documents([Document(text="Hello")], embed_model=vectors())
        answer = index.as_query_engine(llm=model("fake/whole:index")).query("Hello")
        self.assertEqual((str(answer), len(answer.source_nodes)), (TEXT, 1))

    def test_errors(self):
        for kind, words, of in (
            (openai.AuthenticationError, "Invalid or missing API key", {"key": "sk-nothing"}),
            (openai.NotFoundError, "configured providers", {"name": "nobody/whole"}),
            (openai.BadRequestError, "maximum context length", {"name": "fake/too-long"}),
        ):
            with self.assertRaisesRegex(kind, words):
                model(**of).chat(HELLO)
            with self.assertRaisesRegex(kind, words):
                list(model(**of).stream_chat(HELLO))

    def test_a_stream_that_breaks_raises(self):
        for script in BROKEN:
            with self.subTest(script):
                text = ""
                with self.assertRaises(openai.APIError):
                    for chunk in model(f"fake/{script}").stream_chat(HELLO):
                        text += chunk.delta
                self.assertEqual(text, "Hel")

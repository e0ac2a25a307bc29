"""Frameworks for agents in their default mode, which is Responses: the OpenAI Agents SDK, pydantic-ai, LangChain, and
litellm as a client. Each runs a tool, reads a stream, and tells what went wrong."""

import asyncio
import os
import unittest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network when it is imported

import litellm
import openai
from agents import Agent, RunConfig, Runner, function_tool
from agents.models.multi_provider import MultiProvider
from langchain_core.exceptions import ContextOverflowError
from langchain_openai import ChatOpenAI
from openai.types.responses import ResponseTextDeltaEvent
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider as PydanticProvider

from desk import desk
from provider import TEXT


def connection():
    return openai.AsyncOpenAI(base_url=desk().openai_url, api_key=desk().key, max_retries=0)


class AgentsSdk(unittest.TestCase):
    def run_agent(self, model, streamed=False):
        told = []

        @function_tool
        def weather(city: str) -> str:
            """Tells the weather of a city."""
            told.append(city)
            return "7 degrees"

        agent = Agent(name="Clerk", instructions="Help.", model=model, tools=[weather])

        async def run():
            async with connection() as client:
                modes = {"openai_prefix_mode": "model_id", "unknown_prefix_mode": "model_id"}
                config = RunConfig(
                    model_provider=MultiProvider(openai_client=client, **modes), tracing_disabled=True
                )
                if not streamed:
                    return (await Runner.run(agent, "Hello", run_config=config)).final_output
                result = Runner.run_streamed(agent, "Hello", run_config=config)
                events = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
                return "".join(event.delta for event in events if isinstance(event, ResponseTextDeltaEvent))

        return asyncio.run(run()), told

    def test_tools(self):
        for streamed in (False, True):
            self.assertEqual(self.run_agent("fake/called", streamed), (TEXT, ["Oslo"]))

    def test_a_stream_that_breaks_raises(self):
        with self.assertRaisesRegex(Exception, "(?i)failed|the provider fake"):
            self.run_agent("fake/cut", streamed=True)

    def test_errors(self):
        with self.assertRaisesRegex(openai.NotFoundError, "configured providers"):
            self.run_agent("nobody/whole")


class PydanticAi(unittest.TestCase):
    def run_agent(self, name):
        async def run():
            async with connection() as client:
                agent = PydanticAgent(OpenAIResponsesModel(name, provider=PydanticProvider(openai_client=client)))

                @agent.tool_plain
                def weather(city: str) -> str:
                    return f"sunny in {city}"

                return await agent.run("Hello")

        return asyncio.run(run())

    def test_tools(self):
        result = self.run_agent("fake/called:pydantic")
        self.assertEqual((result.output, result.usage.output_tokens), (TEXT, 6))
        self.assertEqual(desk().provider.calls("called:pydantic")[-1]["messages"][-1]["content"], "sunny in Oslo")

    def test_errors(self):
        with self.assertRaisesRegex(ModelHTTPError, "configured providers"):
            self.run_agent("nobody/whole")


class LangChain(unittest.TestCase):
    def model(self, name, **more):
        return ChatOpenAI(model=name, base_url=desk().openai_url, api_key=desk().key, max_retries=0, **more)

    def test_responses(self):
        model = self.model("fake/whole", use_responses_api=True)
        whole = None
        for chunk in model.stream("Hello"):
            whole = chunk if whole is None else whole + chunk
        for answer in (model.invoke("Hello"), whole):
            self.assertEqual((answer.text, answer.usage_metadata["total_tokens"]), (TEXT, 10))

    def test_tools(self):
        tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
        bound = self.model("fake/tools", use_responses_api=True).bind_tools([tool])
        whole = None
        for chunk in bound.stream("Hello"):
            whole = chunk if whole is None else whole + chunk
        for answer in (bound.invoke("Hello"), whole):
            self.assertEqual(answer.tool_calls[0]["args"], {"city": "Oslo"})

    def test_a_prompt_that_is_too_long_is_recognised(self):
        for responses in (False, True):
            with self.assertRaisesRegex(ContextOverflowError, "maximum context length"):
                self.model("fake/too-long", use_responses_api=responses).invoke("Hello")


class LiteLlm(unittest.TestCase):
    def ask(self, model, call=litellm.completion, **more):
        of = {"messages": [{"role": "user", "content": "Hello"}]} if call is litellm.completion else {"input": "Hello"}
        where = {"api_base": desk().openai_url, "api_key": desk().key, "num_retries": 0, "max_retries": 0}
        return call(model=f"openai/{model}", **of, **where, **more)

    def test_both_apis(self):
        self.assertEqual(self.ask("fake/whole").choices[0].message.content, TEXT)
        chunks = self.ask("fake/whole", stream=True)
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks), TEXT)
        self.assertEqual(self.ask("fake/whole", litellm.responses).output[0].content[0].text, TEXT)

    def test_errors(self):
        with self.assertRaisesRegex(litellm.ContextWindowExceededError, "maximum context length"):
            self.ask("fake/too-long")
        with self.assertRaisesRegex(litellm.NotFoundError, "configured providers"):
            self.ask("nobody/whole")

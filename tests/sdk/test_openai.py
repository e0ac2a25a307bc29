"""The `openai` package for Python: what its callers get, and which of its exceptions each failure becomes."""

import asyncio
import time
import unittest

import openai
from pydantic import BaseModel

from desk import desk
from provider import BROKEN, TEXT, TOOL_CALL, USAGE

HELLO = [{"role": "user", "content": "Hello"}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]


class Weather(BaseModel):
    city: str
    degrees: int


def client(key=None, retries=0):
    return openai.OpenAI(base_url=desk().base_url, api_key=key or desk().key, max_retries=retries)


def ask(model="fake/whole", key=None, retries=0, **more):
    return client(key, retries).chat.completions.create(model=model, messages=HELLO, **more)


class Embeddings(unittest.TestCase):
    def test_vectors(self):
        # The package asks for base64 unless told otherwise, and decodes it.
        for more in ({}, {"encoding_format": "float"}):
            answer = client().embeddings.create(model="fake/vectors:py", input=["a", "four"], **more)
            self.assertEqual([one.embedding for one in answer.data], [[1.0, 1.0], [4.0, 1.0]])
            self.assertEqual((answer.model, answer.usage.prompt_tokens), ("fake/vectors:py", 5))


class Answers(unittest.TestCase):
    def test_plain(self):
        answer = ask()
        self.assertEqual(answer.choices[0].message.content, TEXT)
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertEqual(answer.model, "fake/whole")
        self.assertEqual((answer.usage.prompt_tokens, answer.usage.completion_tokens), (7, 3))
        self.assertTrue(answer._request_id)

    def test_headers(self):
        headers = client().chat.completions.with_raw_response.create(model="fake/whole", messages=HELLO).headers
        self.assertEqual(headers["x-mk-model"], "fake/whole")
        self.assertIn("x-ratelimit-remaining", headers)

    def test_tools(self):
        answer = ask("fake/tools:py", tools=TOOLS, tool_choice="auto")
        call = answer.choices[0].message.tool_calls[0]
        self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
        self.assertEqual(call.function.arguments, TOOL_CALL["function"]["arguments"])
        asked = desk().provider.calls("tools:py")[0]
        self.assertEqual((asked["tools"], asked["tool_choice"]), (TOOLS, "auto"))

        result = {"role": "tool", "tool_call_id": call.id, "content": "7 degrees"}
        messages = [*HELLO, answer.choices[0].message, result]
        client().chat.completions.create(model="fake/whole:py-tool-result", messages=messages)
        asked = desk().provider.calls("whole:py-tool-result")[0]["messages"]
        self.assertEqual((asked[1]["tool_calls"], asked[2]), ([TOOL_CALL], result))

    def test_schema(self):
        parse = client().chat.completions.parse
        answer = parse(model="fake/whole:py-schema", messages=HELLO, response_format=Weather)
        self.assertEqual(answer.choices[0].message.parsed, Weather(city="Oslo", degrees=7))
        asked = desk().provider.calls("whole:py-schema")[0]["response_format"]
        self.assertEqual(asked["type"], "json_schema")
        schema = {**Weather.model_json_schema(), "additionalProperties": False}
        self.assertEqual(asked["json_schema"]["schema"], schema)

    def test_other_fields_pass(self):
        ask("fake/whole:py-fields", top_p=0.5, seed=7, stop=["x"], extra_body={"top_k": 3})
        asked = desk().provider.calls("whole:py-fields")[0]
        self.assertEqual([asked[name] for name in ("top_p", "seed", "stop", "top_k")], [0.5, 7, ["x"], 3])

    def test_models(self):
        models = client().models.list()
        self.assertIn(("fake/whole", "fake"), [(model.id, model.owned_by) for model in models])

    def test_model(self):
        model = client().models.retrieve("fake/whole")
        self.assertEqual((model.id, model.object, model.owned_by), ("fake/whole", "model", "fake"))
        with self.assertRaises(openai.NotFoundError) as raised:
            client().models.retrieve("fake/nothing")
        self.assertEqual(raised.exception.response.json()["code"], "model_not_found")


class Streams(unittest.TestCase):
    def test_text(self):
        for model in ("fake/whole", "fake/no-done"):
            chunks = list(ask(model, stream=True))
            self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks), TEXT)
            self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
            self.assertEqual([chunk.choices[0].finish_reason for chunk in chunks[-2:]], [None, "stop"])
            self.assertEqual({(chunk.id, chunk.model) for chunk in chunks}, {(chunks[0].id, model)})
            self.assertTrue(all(chunk.usage is None for chunk in chunks))

    def test_usage(self):
        *_, finish, last = ask(stream=True, stream_options={"include_usage": True})
        self.assertEqual(finish.choices[0].finish_reason, "stop")
        self.assertEqual((last.choices, last.usage.model_dump(exclude_unset=True)), ([], USAGE))

    def test_collected(self):
        with client().chat.completions.stream(model="fake/tools", messages=HELLO, tools=TOOLS) as stream:
            choice = stream.get_final_completion().choices[0]
        self.assertEqual(choice.finish_reason, "tool_calls")
        self.assertEqual(choice.message.tool_calls[0].function.arguments, TOOL_CALL["function"]["arguments"])

    def test_async(self):
        async def text():
            async with openai.AsyncOpenAI(base_url=desk().base_url, api_key=desk().key) as asynchronous:
                stream = await asynchronous.chat.completions.create(model="fake/whole", messages=HELLO, stream=True)
                return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        self.assertEqual(asyncio.run(text()), TEXT)

    def test_one_that_breaks_raises(self):
        for script in BROKEN:
            with self.subTest(script):
                text = ""
                with self.assertRaises(openai.APIError) as raised:
                    for chunk in ask(f"fake/{script}:py", retries=2, stream=True):
                        text += chunk.choices[0].delta.content or ""
                self.assertEqual(text, "Hel")
                code = "provider_timeout" if script == "stall" else "provider_error"
                self.assertEqual(raised.exception.code, code)
                self.assertIn("the provider fake", raised.exception.message)
                self.assertEqual(len(desk().provider.calls(f"{script}:py")), 1)


class Errors(unittest.TestCase):
    def expect(self, kind, status, code, **call):
        for stream in (False, True):
            with self.subTest(code, stream=stream):
                with self.assertRaises(kind) as raised:
                    ask(stream=stream, **call)
                self.assertIs(type(raised.exception), kind)
                self.assertEqual(raised.exception.status_code, status)
                self.assertEqual(raised.exception.response.json()["code"], code)
                # The documented `error` is a word; the sentence beside it is in the response only.
                self.assertEqual(raised.exception.body, raised.exception.response.json()["error"])
                self.assertTrue(raised.exception.request_id)

    def test_keys(self):
        unknown = "mk_inference_" + "0" * 32
        self.expect(openai.AuthenticationError, 401, "invalid_api_key", key="sk-nothing")
        self.expect(openai.AuthenticationError, 401, "invalid_api_key", key=unknown)
        self.expect(openai.AuthenticationError, 401, "wrong_service", key=desk().make_key(service="verify"))
        elsewhere = desk().make_key("--address", "192.0.2.0/24")
        self.expect(openai.PermissionDeniedError, 403, "address_not_allowed", key=elsewhere)

    def test_limits(self):
        key = desk().make_key("--per-minute", "1")
        ask(key=key)
        self.expect(openai.RateLimitError, 429, "rate_limited_minute", key=key)
        # A day is nothing to wait for: the client's retries must not begin.
        key = desk().make_key("--per-day", "1")
        ask(key=key)
        began = time.monotonic()
        self.expect(openai.RateLimitError, 429, "rate_limited_day", key=key, retries=2)
        self.assertLess(time.monotonic() - began, 0.5)

    def test_requests(self):
        self.expect(openai.BadRequestError, 400, "invalid_parameter", temperature=3)
        self.expect(openai.BadRequestError, 400, "invalid_parameter", extra_body={"messages": []})
        self.expect(openai.BadRequestError, 400, "bad_top_k", model="fake/status-400")
        self.expect(openai.BadRequestError, 400, "content_filter", model="fake/filtered")
        self.expect(openai.NotFoundError, 404, "model_not_found", model="nobody/whole")
        self.expect(openai.NotFoundError, 404, "model_not_found", model="gpt-5")
        self.expect(openai.NotFoundError, 404, "model_not_found", model="fake/status-404")

    def test_size(self):
        """There is no class of its own for 413."""
        large = {"metadata": {"x": "y" * 1_100_000}}
        self.expect(openai.APIStatusError, 413, "body_too_large", extra_body=large)

    def test_providers(self):
        """What a provider refuses is never the caller's own key or limit."""
        for script, status, code in (
            ("status-401", 502, "provider_auth_failed"),
            ("status-429", 503, "provider_rate_limited"),
            ("status-500", 502, "provider_error"),
            ("status-503", 503, "provider_overloaded"),
            ("quota", 502, "provider_quota_exhausted"),
            ("hang", 504, "provider_timeout"),
        ):
            self.expect(openai.InternalServerError, status, code, model=f"fake/{script}")


class Retries(unittest.TestCase):
    def test_count_of_calls(self):
        """The client asks three times where a retry may help, once where it cannot."""
        for script, calls in (("status-500", 3), ("status-401", 1), ("quota", 1), ("filtered", 1), ("status-400", 1)):
            with self.subTest(script):
                with self.assertRaises(openai.APIStatusError):
                    ask(f"fake/{script}:py-retries", retries=2)
                self.assertEqual(len(desk().provider.calls(f"{script}:py-retries")), calls)

    def test_success_at_the_second_try(self):
        for provider, tag in (("fake", "py-client"), ("patient", "py-server")):
            for stream in (False, True):
                model = f"second-try:{tag}-{stream}"
                answer = ask(f"{provider}/{model}", retries=1 if provider == "fake" else 0, stream=stream)
                texts = [chunk.choices[0].delta.content or "" for chunk in answer] if stream else None
                self.assertEqual("".join(texts) if stream else answer.choices[0].message.content, TEXT)
                self.assertEqual(len(desk().provider.calls(model)), 2)

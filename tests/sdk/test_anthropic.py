"""The `anthropic` package for Python at the door `/anthropic`: what its callers get, and which of its exceptions each
failure becomes. The models are scripts of provider.py, which knows nothing but chat completions."""

import unittest

import anthropic

from desk import desk
from provider import BROKEN, TEXT, TOOL_CALL

HELLO = [{"role": "user", "content": "Hello"}]
TOOLS = [{"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}]


def client(key=None, retries=0, **more):
    base = desk().address + "/anthropic"
    if "auth_token" in more:
        return anthropic.Anthropic(base_url=base, max_retries=retries, **more)
    return anthropic.Anthropic(base_url=base, api_key=key or desk().key, max_retries=retries)


def ask(model="fake/whole", key=None, retries=0, **more):
    return client(key, retries).messages.create(**{"model": model, "messages": HELLO, "max_tokens": 100, **more})


class Answers(unittest.TestCase):
    def test_plain(self):
        answer = ask()
        self.assertEqual([(block.type, block.text) for block in answer.content], [("text", TEXT)])
        self.assertEqual((answer.stop_reason, answer.model, answer.role), ("end_turn", "fake/whole", "assistant"))
        self.assertEqual((answer.usage.input_tokens, answer.usage.output_tokens), (7, 3))
        self.assertTrue(answer.id.startswith("msg_") and answer._request_id)

    def test_bearer(self):
        answer = client(auth_token=desk().key).messages.create(model="fake/whole", messages=HELLO, max_tokens=9)
        self.assertEqual(answer.content[0].text, TEXT)

    def test_stream(self):
        with client().messages.stream(model="fake/whole", messages=HELLO, max_tokens=100) as stream:
            self.assertEqual("".join(stream.text_stream), TEXT)
            answer = stream.get_final_message()
        self.assertEqual((answer.content[0].text, answer.stop_reason), (TEXT, "end_turn"))
        self.assertEqual((answer.usage.input_tokens, answer.usage.output_tokens), (7, 3))

    def test_tools(self):
        for streamed in (False, True):
            of = f"tools:anthropic-{streamed}"
            asked = {"model": f"fake/{of}", "messages": HELLO, "max_tokens": 100, "tools": TOOLS}
            if streamed:
                with client().messages.stream(**asked) as stream:
                    answer = stream.get_final_message()
            else:
                answer = client().messages.create(**asked)
            call = answer.content[0]
            self.assertEqual((call.type, call.name, call.input), ("tool_use", "weather", {"city": "Oslo"}))
            self.assertEqual(answer.stop_reason, "tool_use")
            function = desk().provider.calls(of)[0]["tools"][0]["function"]
            self.assertEqual(function["parameters"], TOOLS[0]["input_schema"])

        result = {"type": "tool_result", "tool_use_id": call.id, "content": "7 degrees"}
        turns = [*HELLO, {"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
        ask("fake/whole:anthropic-result", messages=turns, tools=TOOLS)
        asked = desk().provider.calls("whole:anthropic-result")[0]["messages"]
        self.assertEqual(asked[1]["tool_calls"][0]["id"], TOOL_CALL["id"])
        self.assertEqual(asked[2], {"role": "tool", "tool_call_id": TOOL_CALL["id"], "content": "7 degrees"})

    def test_lengths_and_models(self):
        count = client().messages.count_tokens(model="fake/whole", messages=HELLO)
        self.assertGreater(count.input_tokens, 0)
        self.assertIn("fake/whole", [model.id for model in client().models.list(limit=1000)])
        self.assertEqual(client().models.retrieve("fake/whole").display_name, "fake/whole")


class Failures(unittest.TestCase):
    def fails(self, kind, *words, **asked):
        with self.assertRaises(kind) as raised:
            ask(**asked)
        for word in words:
            self.assertIn(word, str(raised.exception))
        return raised.exception

    def test_statuses(self):
        self.fails(anthropic.AuthenticationError, "Invalid or missing API key", key="mk_inference_nonsense", retries=5)
        self.fails(anthropic.NotFoundError, "configured providers", model="nobody")
        self.fails(anthropic.BadRequestError, "`mcp_servers`", extra_body={"mcp_servers": [{"type": "url"}]})
        self.fails(anthropic.BadRequestError, "top_k is out of range", model="fake/status-400")
        self.fails(anthropic.InternalServerError, "failed", model="fake/status-500")
        refused = self.fails(anthropic.APIStatusError, model="fake/status-429")
        self.assertEqual((refused.status_code, refused.body["error"]["type"]), (503, "overloaded_error"))
        self.assertTrue(refused.request_id)

    def test_broken_streams(self):
        for script in BROKEN:
            with self.subTest(script), self.assertRaises(anthropic.APIError):
                with client().messages.stream(model=f"fake/{script}", messages=HELLO, max_tokens=9) as stream:
                    stream.get_final_message()

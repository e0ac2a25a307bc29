"""The command line tool `llm`, told of the server as its users do: by `extra-openai-models.yaml`."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from desk import desk
from provider import TEXT

MODEL = {"api_key_name": "mk", "supports_schema": True, "supports_tools": True}


class Llm(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        names = ("whole", "cut", "called", "status-401", "status-429")
        models = [
            {**MODEL, "model_id": name, "model_name": f"fake/{name}", "api_base": desk().base_url} for name in names
        ]
        # JSON is YAML.
        (Path(home.name) / "extra-openai-models.yaml").write_text(json.dumps(models))
        self.env = {"HOME": home.name, "LLM_USER_PATH": home.name, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        self.assertEqual(self.llm("keys", "set", "mk", "--value", desk().key).returncode, 0)

    def llm(self, *arguments):
        command = [sys.executable, "-m", "llm", *arguments]
        quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "encoding": "utf-8"}
        return subprocess.run(command, env=self.env, timeout=60, **quiet)

    def test_prompt(self):
        for more in ([], ["--no-stream"]):
            done = self.llm("-m", "whole", "Hello", "--usage", *more)
            self.assertEqual((done.returncode, done.stdout), (0, TEXT + "\n"), done.stderr)
            self.assertIn("7 input, 3 output", done.stderr)

    def test_schema(self):
        done = self.llm("-m", "whole", "Hello", "--no-stream", "--schema", "city, degrees int")
        self.assertEqual((done.returncode, json.loads(done.stdout)), (0, {"city": "Oslo", "degrees": 7}))

    def test_tools(self):
        tool = "def weather(city: str) -> str:\n    return 'sunny in ' + city"
        for more in ([], ["--no-stream"]):
            done = self.llm("-m", "called", "Hello", "--functions", tool, *more)
            self.assertEqual((done.returncode, done.stdout.strip()), (0, TEXT), done.stderr)
            result = desk().provider.calls("called")[-1]["messages"][-1]
            self.assertEqual((result["role"], result["content"]), ("tool", "sunny in Oslo"))

    def test_failures(self):
        for model, words in (("status-401", "502"), ("status-429", "503")):
            for more in ([], ["--no-stream"]):
                done = self.llm("-m", model, "Hello", *more)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(words, done.stderr)

    def test_a_stream_that_breaks_fails(self):
        done = self.llm("-m", "cut", "Hello")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout.strip(), "Hel")
        self.assertIn("the provider fake", done.stderr)

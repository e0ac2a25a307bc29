"""Runs the tests of packages for Node, `*.test.mjs`, against the same server."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

from desk import desk

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("MK_NODE", HERE.parents[1] / "target/clients/node"))


class Node(unittest.TestCase):
    def test_openai(self):
        self.passes("openai.test.mjs")

    def test_anthropic(self):
        self.passes("anthropic.test.mjs")

    def test_ai(self):
        self.passes("ai.test.mjs")

    def passes(self, name):
        # Node looks for packages beside the file that asks for them.
        script = shutil.copy(HERE / name, FOLDER)
        env = {
            "PATH": os.environ["PATH"],
            "MK_ADDRESS": desk().address,
            "MK_BASE_URL": desk().base_url,
            "MK_OPENAI_URL": desk().openai_url,
            "MK_KEY": desk().key,
            "MK_KEY_ELSEWHERE": desk().make_key("--address", "192.0.2.0/24"),
            "MK_KEY_OF_VERIFY": desk().make_key(service="verify"),
            "MK_KEY_PER_MINUTE": desk().make_key("--per-minute", "1"),
            "PROVIDER_URL": desk().provider.base_url,
        }
        command = ["node", "--test", "--test-reporter=tap", script]
        done = subprocess.run(command, env=env, timeout=120, capture_output=True, encoding="utf-8")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^# pass [1-9]")

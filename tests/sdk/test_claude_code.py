"""Claude Code itself, headless and with its default settings, edits a file at the door `/anthropic`, whatever the kind
of the provider behind it. Its package has 240 MB, so it runs only where MK_CLAUDE names the program (`npm install
@anthropic-ai/claude-code`), as every night."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from agent import DONE, NEW, OLD, Model
from server import Server

CLAUDE = os.environ.get("MK_CLAUDE")
CONFIG = """
[providers.fake]
kind = "{kind}"
base_url = "{base_url}"
"""


@unittest.skipUnless(CLAUDE, "MK_CLAUDE does not name the program")
class ClaudeCode(unittest.TestCase):
    def edits(self, kind, model):
        class Desk(Server):
            def __init__(self, file):
                self.model = Model(file)
                super().__init__(CONFIG.format(kind=kind, base_url=self.model.base_url))

        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="mk-agent-"))
        file = Path(folder) / "note.txt"
        file.write_text(OLD + "\n")
        desk = Desk(file)
        env = {
            "HOME": str(desk.home),
            "PATH": os.environ["PATH"],
            "ANTHROPIC_BASE_URL": desk.address + "/anthropic",
            "ANTHROPIC_AUTH_TOKEN": desk.make_key("--per-minute", "0", "--per-day", "0"),
            "ANTHROPIC_MODEL": f"fake/{model}",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": f"fake/{model}",
        }
        command = [CLAUDE, "-p", f"Change {OLD!r} to {NEW!r} in note.txt.", "--allowedTools", "Read,Edit"]
        command += ["--output-format", "json"]
        quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "encoding": "utf-8"}
        try:
            done = subprocess.run(command, env=env, cwd=file.parent, timeout=300, **quiet)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(json.loads(done.stdout)["result"], DONE)
            self.assertEqual(file.read_text(), NEW + "\n")
        finally:
            desk.stop()
            desk.model.stop()
        return desk.model.bodies

    def test_openai(self):
        bodies = self.edits("openai", "gpt-4.1")
        self.assertFalse([body for body in bodies if "cache_control" in json.dumps(body["messages"])])

    def test_anthropic(self):
        bodies = self.edits("anthropic", "claude-sonnet-5")
        self.assertTrue([body for body in bodies if "cache_control" in json.dumps(body)])


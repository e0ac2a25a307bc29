"""Codex itself, headless and with its default settings, edits a file at the door `/openai/v1`, whatever the kind of the
provider behind it. Its package has 420 MB, so it runs only where MK_CODEX names the program (`npm install
@openai/codex`), as every night."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from agent import DONE, NEW, OLD, Model
from server import Server

CODEX = os.environ.get("MK_CODEX")
SERVER = """
[providers.fake]
kind = "{kind}"
base_url = "{base_url}"
"""
# As the manual has it.
CODEX_CONFIG = """
model = "fake/m"
model_provider = "mk"
[model_providers.mk]
name = "mk"
base_url = "{address}/openai/v1"
env_key = "MK_KEY"
"""


@unittest.skipUnless(CODEX, "MK_CODEX does not name the program")
class Codex(unittest.TestCase):
    def run_codex(self, kind, key=None):
        """What it printed, what became of the file, and what the provider was sent."""
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="mk-agent-")))
        file, home = folder / "note.txt", folder / "home"
        file.write_text(OLD + "\n")
        home.mkdir()
        model = Model(file)
        self.addCleanup(model.stop)
        server = Server(SERVER.format(kind=kind, base_url=model.base_url))
        self.addCleanup(server.stop)
        (home / "config.toml").write_text(CODEX_CONFIG.format(address=server.address))
        key = key or server.make_key("--per-minute", "0", "--per-day", "0")
        env = {"HOME": str(home), "CODEX_HOME": str(home), "PATH": os.environ["PATH"], "MK_KEY": key}
        # Its own sandbox needs what a container may not have.
        command = [CODEX, "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"]
        command.append(f"Change {OLD!r} to {NEW!r} in note.txt.")
        quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "encoding": "utf-8"}
        done = subprocess.run(command, env=env, cwd=folder, timeout=120, **quiet)
        return done, file.read_text(), model.bodies

    def test_it_edits_a_file(self):
        for kind in ("openai", "anthropic", "google"):
            with self.subTest(kind):
                done, text, bodies = self.run_codex(kind)
                self.assertEqual((done.returncode, done.stdout.strip()), (0, DONE), done.stderr)
                self.assertEqual(text, NEW + "\n")
                self.assertEqual(len(bodies), 2)

    def test_people_see_that_a_key_is_refused(self):
        done, text, bodies = self.run_codex("openai", key="sk-nothing")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Invalid or missing API key", done.stdout + done.stderr)
        self.assertEqual((text, bodies), (OLD + "\n", []))

"""The server under test, `mk serve`, in front of the fake provider; one pair for all tests of a run.

The provider is configured twice: as `fake`, whose failures are not tried again by the server, so that a client's own
retries can be counted, and as `patient` with the server's usual retries.
"""

import atexit
import json
import os
import subprocess
import tempfile
import threading
from pathlib import Path

from provider import Provider

MK = Path(os.environ.get("MK_BINARY", Path(__file__).parents[2] / "target/debug/mk")).resolve()
CONFIG = """
listen = "127.0.0.1:0"
data_dir = "data"
[providers.fake]
kind = "openai"
base_url = "{base_url}"
retries = 0
breaker_failures = 0
first_byte_timeout = "1s"
idle_timeout = "1s"
[providers.fake.models.whole]
[providers.patient]
kind = "openai"
base_url = "{base_url}"
"""


class Desk:
    """A provider, a server and the means to make keys."""

    def __init__(self):
        self._dir = tempfile.TemporaryDirectory(prefix="mk-clients-")
        self.home = Path(self._dir.name)
        self.provider = Provider()
        self.config = self.home / "server.toml"
        self.config.write_text(CONFIG.format(base_url=self.provider.base_url))
        # Nothing of the caller's environment may change what is tested, such as a proxy or a real key.
        self._env = {"HOME": self._dir.name, "PATH": os.environ["PATH"]}
        self._lines = []
        self._address = None
        self._told = threading.Event()
        command = [MK, "serve", "--config", self.config]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        self._server = subprocess.Popen(command, env=self._env, stderr=subprocess.PIPE, text=True, **quiet)
        atexit.register(self._server.kill)  # whatever happens before `stop`
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        if not self._told.wait(30) or self._address is None:
            raise RuntimeError("mk serve does not serve:\n" + "".join(self._lines))
        self.base_url = self._address + "/inference/v1"
        self.key = self.make_key("--per-minute", "0", "--per-day", "0")

    def _read_log(self):
        """Keeps the log, and takes the address from the line that tells it."""
        for line in self._server.stderr:
            self._lines.append(line)
            event = json.loads(line) if line.startswith("{") else {}
            if event.get("message") == "serving":
                self._address = event["address"]
                self._told.set()
        self._told.set()

    def make_key(self, *options, service="inference"):
        command = [MK, "keys", "create", "--config", self.config, "--service", service, *options]
        return subprocess.run(command, env=self._env, check=True, capture_output=True, text=True).stdout.strip()

    def stop(self):
        self._server.terminate()
        code = self._server.wait(30)
        self._reader.join(30)
        self.provider.stop()
        self._dir.cleanup()
        log = "".join(self._lines)
        if code != 0 or '"ERROR"' in log:
            raise RuntimeError(f"mk serve ended with {code}:\n{log}")


_desk = None


def desk():
    """The desk of this run, made at the first call."""
    global _desk
    _desk = _desk or Desk()
    return _desk


def close():
    """Ends the desk, if there is one; fails if the server did not end well."""
    if _desk:
        _desk.stop()

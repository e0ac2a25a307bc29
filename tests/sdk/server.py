"""`mk serve` as a process of its own, on a free port and a directory of its own, and `mk` beside it on its database."""

import atexit
import json
import os
import subprocess
import tempfile
import threading
from pathlib import Path

MK = Path(os.environ.get("MK_BINARY", Path(__file__).parents[2] / "target/debug/mk")).resolve()
PLACE = 'listen = "127.0.0.1:0"\ndata_dir = "data"\n'


class Server:
    """A server with this configuration, which says neither where it listens nor where its data lie."""

    def __init__(self, config, *options):
        self._dir = tempfile.TemporaryDirectory(prefix="mk-clients-")
        self.home = Path(self._dir.name)
        self.config = self.home / "server.toml"
        self.config.write_text(PLACE + config)
        # Nothing of the caller's environment may change what is tested, such as a proxy or a real key.
        self.env = {"HOME": self._dir.name, "PATH": os.environ["PATH"]}
        self._lines = []
        self.address = None
        self._told = threading.Event()
        command = [MK, "serve", "--config", self.config, *options]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, env=self.env, stderr=subprocess.PIPE, text=True, **quiet)
        atexit.register(self._process.kill)  # whatever happens before `stop`
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        if not self._told.wait(30) or self.address is None:
            raise RuntimeError("mk serve does not serve:\n" + "".join(self._lines))

    def _read_log(self):
        """Keeps the log, and takes the address from the line that tells it."""
        for line in self._process.stderr:
            self._lines.append(line)
            event = json.loads(line) if line.startswith("{") else {}
            if event.get("message") == "serving":
                self.address = event["address"]
                self._told.set()
        self._told.set()

    def mk(self, *arguments):
        """What `mk` prints of its work on this server's database."""
        command = [MK, *arguments, "--config", self.config]
        return subprocess.run(command, env=self.env, check=True, capture_output=True, text=True).stdout.strip()

    def make_key(self, *options, service="inference"):
        return self.mk("keys", "create", "--service", service, *options)

    def stop(self):
        """Ends it; fails if it did not end well, or logged an error."""
        self._process.terminate()
        code = self._process.wait(30)
        self._reader.join(30)
        self._dir.cleanup()
        log = "".join(self._lines)
        if code != 0 or '"ERROR"' in log:
            raise RuntimeError(f"mk serve ended with {code}:\n{log}")

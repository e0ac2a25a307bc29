"""The server under test, `mk serve`, in front of the fake provider; one pair for all tests of a run.

The provider is configured twice: as `fake`, whose failures are not tried again by the server, so that a client's own
retries can be counted, and as `patient` with the server's usual retries.
"""

from provider import Provider
from server import Server

CONFIG = """
inference_max_body_bytes = 1048576
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


class Desk(Server):
    """A provider, a server and the means to make keys."""

    def __init__(self):
        self.provider = Provider()
        super().__init__(CONFIG.format(base_url=self.provider.base_url))
        self.base_url = self.address + "/inference/v1"
        self.openai_url = self.address + "/openai/v1"
        self.key = self.make_key("--per-minute", "0", "--per-day", "0")

    def stop(self):
        try:
            super().stop()
        finally:
            self.provider.stop()


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

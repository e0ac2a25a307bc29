"""Schemathesis against /openapi.json: whatever is sent, the server does not fail, and answers as it is described.

The server is simulated and has no limits. What is changed, revoked and deleted are objects made for that: the keys in use
belong to an app whose id no request has, as ids come from here alone.
"""

import json
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

from server import Server

# An address that takes the service's key, and a body for it.
USES = {
    "verify": ("/verify/v1/stream", b"{}"),
    "inference": ("/inference/v1/models", None),
    "console": ("/v1/billing", None),
}
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
# When a run is taken to hang. On a slow machine, 90 were too few for one that did not.
SECONDS = 600
CONFIG = """
[limits]
per_minute = 0
per_day = 0
open_pages_per_minute = 0
failed_auth_per_minute = 0
# As many characters fit into a body in any notation, so that it is never refused for its size.
[verify]
max_fact_chars = 2000
"""
# Alone, since generators of data get in each other's way. The same seed each time, so that a change is tested and not
# luck. Later requests are not made of earlier answers, as these name the keys in use.
RUN = """
workers = 1
seed = 4
color = false
max-failures = 20
warnings = false
[generation]
max-examples = 25
[auth.openapi]
verifyKey = {{ bearer = "{keys[verify]}" }}
inferenceKey = {{ bearer = "{keys[inference]}" }}
consoleKey = {{ bearer = "{keys[console]}" }}
consoleSession = {{ api_key = "{session}" }}
[phases]
stateful.enabled = false
examples.extra-data-sources.responses = false
coverage.extra-data-sources.responses = false
fuzzing.extra-data-sources.responses = false
[dictionaries]
apps = {{ values = ["{app}"] }}
keys = {{ values = ["{key}"] }}
ended_apps = {{ values = ["{ended_app}"] }}
ended_keys = {{ values = ["{ended_key}"] }}
[parameters]
"path.app_id" = {{ dictionary = "apps", probability = 0.7 }}
"path.key_id" = {{ dictionary = "keys", probability = 0.7 }}
[[operations]]
include-operation-id = ["createChatCompletion", "createChatCompletionAtOpenAi", "createResponse", "createMessage", "countMessageTokens", "createEmbeddings", "createEmbeddingsAtOpenAi", "tryChat"]
parameters = {{ "body.model" = "sandbox/alpha" }}
# A provider takes less than the format allows, the sandbox least of all; and what is passed on is the provider's to judge.
checks.positive_data_acceptance.enabled = false
checks.negative_data_rejection.enabled = false
# What depends on other fields, on the time of day or on how an address is written is told in words.
[[operations]]
include-operation-id = ["createKey", "updateKey", "getUsage"]
checks.positive_data_acceptance.enabled = false
# Clients of the Messages API add parameters of their own, and an empty one counts as left out.
[[operations]]
include-operation-id = "listMessagesModels"
checks.positive_data_acceptance.enabled = false
checks.negative_data_rejection.enabled = false
[[operations]]
include-operation-id = "deleteApp"
parameters = {{ "path.app_id" = {{ dictionary = "ended_apps", probability = 0.7 }} }}
[[operations]]
include-operation-id = ["revokeKey", "rotateKey"]
parameters = {{ "path.key_id" = {{ dictionary = "ended_keys", probability = 0.7 }} }}
"""


class Description(unittest.TestCase):
    def setUp(self):
        self.server = Server(CONFIG, "--sandbox")
        self.addCleanup(self.server.stop)
        self.keys = {service: self.server.make_key(service=service) for service in USES}
        app, key = self.make_app("kept"), self.make_key("kept")
        values = {"app": app, "key": key, "ended_key": self.make_key("kept"), "ended_app": self.make_app("ended")}
        self.make_key("ended")
        self.file = self.server.home / "schemathesis.toml"
        self.file.write_text(RUN.format(keys=self.keys, session=self.begin_session(), **values))

    def make_app(self, name):
        return json.loads(self.server.mk("apps", "create", name, "--json"))["app"]["id"]

    def make_key(self, app):
        return json.loads(self.server.make_key("--app", app, "--json", service="verify"))["id"]

    def begin_session(self):
        """The cookie of a session. Nothing that is sent ends it: that takes a page of the server's own."""
        body = json.dumps({"key": self.keys["console"]}).encode()
        with self.send("/v1/auth/session", body) as answer:
            return answer.headers["set-cookie"].split(";")[0].removeprefix("mk_session=")

    def send(self, path, body=None, **headers):
        headers["content-type"] = "application/json"
        return DIRECT.open(urllib.request.Request(self.server.address + path, data=body, headers=headers))

    def status(self, path, service, body):
        try:
            with self.send(path, body, authorization=f"Bearer {self.keys[service]}") as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def description(self):
        """The server's own, without the length of a context: up to 100,000 characters of a pattern take minutes to make."""
        with self.send("/openapi.json") as answer:
            description = json.load(answer)
        del description["components"]["schemas"]["VerifyRequest"]["properties"]["context"]["maxLength"]
        file = self.server.home / "openapi.json"
        file.write_text(json.dumps(description))
        return file

    def test_answers_are_as_described(self):
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", self.file, "run", "--url"]
        command += [self.server.address, self.description()]
        home = {"cwd": self.server.home, "env": self.server.env, "timeout": SECONDS}
        run = subprocess.run(command, capture_output=True, text=True, check=False, **home)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        # Had a key been lost on the way, everything behind would have been refused, as it is described.
        for service, (path, body) in USES.items():
            self.assertNotIn(self.status(path, service, body), (401, 403), service)

"""A fake model provider in the chat-completion format, on a real socket.

The model's name is the script: `cut` breaks its stream, `status-500` answers that status. What follows a `:` only
tells calls of different tests apart, so that `calls` can count those of one test. A name without a script fails,
lest a typo look like a success.
"""

import base64
import json
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORDS = ["Hel", "lo, ", "wörld", " \u2713"]
TEXT = "".join(WORDS)
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
ARGUMENTS = ['{"city":', ' "Oslo"}']
TOOL_CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "".join(ARGUMENTS)}}
# Streams that end as they should, and streams that break behind the first word. The server and the clients must tell
# them apart: `cut` breaks the connection, `ended` closes it in order but without a finish reason, `stall` falls
# silent, `broken` reports an error.
WHOLE = ("whole", "tools", "called", "no-done", "second-try")
BROKEN = ("cut", "ended", "stall", "broken")
# Longer than the time limits that desk.py sets.
SILENCE = 4
# How long, in seconds, keeps two things from arriving together.
APART = 0.3
# Statuses that providers fail with, and what they say then.
COMPLAINTS = {
    "status-400": (400, {"message": "top_k is out of range", "type": "invalid_request_error", "code": "bad_top_k"}),
    "status-401": (401, {"message": "Incorrect API key", "code": "invalid_api_key"}),
    "status-404": (404, {"message": "no such model", "code": "model_not_found"}),
    "status-429": (429, {"message": "slow down", "code": "rate_limit_exceeded"}),
    "status-500": (500, {"message": "something broke"}),
    "status-503": (503, {"message": "overloaded"}),
    "quota": (429, {"message": "no money left", "code": "insufficient_quota"}),
    "too-long": (400, {"message": "9 tokens are too many", "code": "context_length_exceeded"}),
    "filtered": (400, {"message": "flagged by the filter", "code": "content_filter"}),
}


class Provider:
    """The provider, listening on a free port of this machine until `stop`."""

    def __init__(self):
        self._asked = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    def calls(self, model):
        """The bodies that came for a model, `<script>` or `<script>:<tag>`."""
        with self._lock:
            return [body for body in self._asked if body["model"] == model]

    def note(self, body):
        """Keeps a body; tells how many came for its model so far."""
        with self._lock:
            self._asked.append(body)
            return sum(one["model"] == body["model"] for one in self._asked)


def _handler(provider):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            """`/seen/<model>`: the bodies of its calls, for tests in other languages."""
            self._json(200, provider.calls(self.path.removeprefix("/v1/seen/")))

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path.endswith("/responses"):  # it knows nothing but chat completions
                return self._json(404, {"error": {"message": "Not Found"}})
            nth = provider.note(body)
            script = body["model"].split(":")[0]
            if script == "called":  # until the tool has answered
                script = "whole" if body["messages"][-1]["role"] == "tool" else "tools"
            if script in COMPLAINTS:
                status, error = COMPLAINTS[script]
                self._json(status, {"error": error})
            elif script == "second-try" and nth == 1:
                self._json(503, {"error": {"message": "not yet"}})
            elif script == "vectors":
                self._json(200, _vectors(body))
            elif script == "hang":
                time.sleep(SILENCE)
            elif script not in (*WHOLE, *BROKEN):
                self._json(418, {"error": {"message": f"no script {script!r}"}})
            elif body.get("stream"):
                self._stream(script)
            else:
                self._json(200, _completion(body, script))

        def _json(self, status, value):
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, script):
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self.close_connection = True
            self._chunk({"role": "assistant", "content": ""})
            deltas = list(_tool_deltas()) if script == "tools" else [{"content": word} for word in WORDS]
            if script in BROKEN:
                self._chunk(deltas[0])
                return self._break(script)
            for delta in deltas:
                self._chunk(delta)
            self._chunk({}, finish_reason="tool_calls" if script == "tools" else "stop")
            self._data({"choices": [], "usage": USAGE})
            if script != "no-done":
                self._write("data: [DONE]\n\n")
            self._write("")

        def _break(self, script):
            if script == "stall":
                time.sleep(SILENCE)
            else:
                # What fails together with its beginning is told by a status.
                time.sleep(APART)
            if script == "broken":
                self._data({"error": {"message": "the model fell over", "code": 500}})
            if script == "ended":
                self._write("")

        def _chunk(self, delta, finish_reason=None):
            choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
            frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_795_000_000, "model": "m"}
            self._data({**frame, "choices": [choice]})

        def _data(self, value):
            self._write(f"data: {json.dumps(value)}\n\n")

        def _write(self, text):
            """Sends a piece of the body at once; an empty one ends it."""
            data = text.encode()
            try:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            except OSError:
                self.close_connection = True  # whoever asked has left

    return Handler


def _tool_deltas():
    function = {"name": "weather", "arguments": ""}
    yield {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}
    for piece in ARGUMENTS:
        yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}


def _vectors(body):
    """The vector of each text: the number of its characters, and one, in the form that is asked for."""
    def written(text):
        vector = [float(len(text)), 1.0]
        is_base64 = body.get("encoding_format") == "base64"
        return base64.b64encode(struct.pack("<2f", *vector)).decode() if is_base64 else vector

    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    data = [{"object": "embedding", "index": at, "embedding": written(text)} for at, text in enumerate(texts)]
    usage = {"prompt_tokens": 5, "total_tokens": 5}
    return {"object": "list", "data": data, "model": body["model"], "usage": usage}


def _completion(body, script):
    message, reason = {"role": "assistant", "content": TEXT}, "stop"
    if script == "tools":
        message, reason = {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]}, "tool_calls"
    elif "response_format" in body:
        message["content"] = json.dumps({"city": "Oslo", "degrees": 7})
    choice = {"index": 0, "message": message, "finish_reason": reason}
    shape = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_795_000_000, "model": body["model"]}
    return {**shape, "choices": [choice], "usage": USAGE}

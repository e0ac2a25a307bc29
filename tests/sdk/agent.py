"""A fake provider that has a coding agent edit a file: it asks for the tool `Read`, then `Edit`, or for a command where
there is a tool for that, then says that it is done. It speaks chat completions, Messages and Gemini's format, so that
an agent can be held against every kind of provider."""

import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OLD, NEW, DONE = "old line", "new line", "I changed the file."


class Model:
    """The provider, listening on a free port of this machine until `stop`; it has `file` edited."""

    def __init__(self, file):
        self._file = str(file)
        self._numbers = itertools.count()
        self.bodies = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    def turn(self, tools, results):
        """The text, and the call of a tool: its id, name and arguments."""
        if "exec_command" in tools and results == 0:
            command = f"sed -i 's/{OLD}/{NEW}/' {self._file}"
            return "", (f"call_{next(self._numbers)}", "exec_command", {"cmd": command})
        path = {"file_path": self._file}
        if "Edit" not in tools or results > 1:
            return DONE, None
        name = f"call_{next(self._numbers)}"
        if results == 0:
            return "", (name, "Read", path)
        return "", (name, "Edit", {**path, "old_string": OLD, "new_string": NEW})


def _handler(model):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            path = self.path.partition("?")[0]
            if path.endswith("/responses"):  # not among its formats
                self.send_response(404)
                self.send_header("content-length", "0")
                self.end_headers()
                return
            model.bodies.append(body)
            formats = {"messages": _messages, "m:streamGenerateContent": _gemini}
            events = formats.get(path.rpartition("/")[2], _chat)(model, body)
            data = "".join(events).encode()
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def _chat(model, body):
    tools = [tool["function"]["name"] for tool in body.get("tools", [])]
    text, call = model.turn(tools, sum(message["role"] == "tool" for message in body["messages"]))
    delta = {"content": text}
    if call:
        name, tool, arguments = call
        function = {"name": tool, "arguments": json.dumps(arguments)}
        delta = {"tool_calls": [{"index": 0, "id": name, "type": "function", "function": function}]}
    pieces = [({"role": "assistant", "content": ""}, None), (delta, None), ({}, "tool_calls" if call else "stop")]
    for delta, reason in pieces:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        yield f"data: {json.dumps({'id': 'chatcmpl-1', 'choices': [choice]})}\n\n"
    usage = {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59}
    yield f"data: {json.dumps({'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n"


def _messages(model, body):
    tools = [tool["name"] for tool in body.get("tools", [])]
    blocks = [block for turn in body["messages"] if isinstance(turn["content"], list) for block in turn["content"]]
    text, call = model.turn(tools, sum(block["type"] == "tool_result" for block in blocks))
    usage = {"input_tokens": 50, "output_tokens": 1}
    message = {"id": f"msg_{len(model.bodies)}", "type": "message", "role": "assistant", "content": [], "model": "m"}
    yield _event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage})
    if call:
        name, tool, arguments = call
        block, delta = {"type": "tool_use", "id": name, "name": tool, "input": {}}, "input_json_delta"
        piece = {"partial_json": json.dumps(arguments)}
    else:
        block, delta, piece = {"type": "text", "text": ""}, "text_delta", {"text": text}
    yield _event("content_block_start", index=0, content_block=block)
    yield _event("content_block_delta", index=0, delta={"type": delta, **piece})
    yield _event("content_block_stop", index=0)
    end = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    yield _event("message_delta", delta=end, usage={"output_tokens": 9})
    yield _event("message_stop")


def _gemini(model, body):
    tools = [function["name"] for tool in body.get("tools", []) for function in tool["functionDeclarations"]]
    parts = [part for turn in body["contents"] for part in turn["parts"]]
    text, call = model.turn(tools, sum("functionResponse" in part for part in parts))
    part = {"functionCall": {"name": call[1], "args": call[2]}} if call else {"text": text}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 50, "candidatesTokenCount": 9, "totalTokenCount": 59}
    yield f"data: {json.dumps({'candidates': [candidate], 'usageMetadata': usage})}\n\n"


def _event(name, **fields):
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n"

// A model provider in the chat-completion format. The model's name selects its behaviour; `asked` has the requests.
import http from "node:http";

const WORDS = ["Hello", " from", " afar."];
/** Failures before the first byte have an error status. */
const APART_MS = 300;
const USAGE = { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 };

/** A provider that runs until `close`; `config` is the server's configuration for it, with a price only for `priced`. */
export async function provider() {
  const asked = [];
  const server = http.createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    const body = JSON.parse(text);
    asked.push(body);
    if (body.model === "broken") {
      response.writeHead(401, { "content-type": "application/json" }).end('{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}');
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (value) => response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: body.model, choices: [], ...value })}\n\n`);
    for (const content of WORDS) send({ choices: [{ index: 0, delta: { role: "assistant", content }, finish_reason: null }] });
    if (body.model === "cut") {
      setTimeout(() => response.destroy(), APART_MS);
      return;
    }
    send({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
    send({ usage: USAGE });
    response.end("data: [DONE]\n\n");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const config = `
[providers.fake]
kind = "openai"
base_url = "http://127.0.0.1:${server.address().port}/v1"
retries = 0
[providers.fake.models.priced]
input_usd_per_mtok = 2.0
output_usd_per_mtok = 10.0
[providers.fake.models.unpriced]
[providers.fake.models.broken]
[providers.fake.models.cut]
`;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { asked, config, close };
}

// A model provider that answers at once: OpenAI chat completions, whole. Prints its port.
//
// It takes its time where it is told to: EXEUNT_MODEL_SECONDS for each answer.
//
// A prompt that begins with "tool" is answered by a call of `echo`, one with "clear" by a call of `clear_context`.
import { createServer } from "node:http";
import { setTimeout } from "node:timers/promises";

const delay = 1000 * Number(process.env.EXEUNT_MODEL_SECONDS ?? 0);

const call = (name, args) => ({
    role: "assistant",
    content: null,
    tool_calls: [{ id: `call_${Date.now()}`, type: "function", function: { name, arguments: JSON.stringify(args) } }],
});

function reply({ role, content }) {
    if (role === "tool") return { role: "assistant", content: "done" };
    const prompt = String(content).replace(/^<current_datetime>.*<\/current_datetime>\s*/, "");
    if (prompt.startsWith("tool")) return call("echo", { text: "hello" });
    if (prompt.startsWith("clear")) return call("clear_context", { prompt: "go on" });
    return { role: "assistant", content: "An answer of the usual length, which is about as long as this line is." };
}

const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const { messages } = JSON.parse(Buffer.concat(parts));
    const message = reply(messages.at(-1));
    const body = JSON.stringify({
        id: "c",
        object: "chat.completion",
        created: 1,
        model: "fake",
        choices: [{ index: 0, message, finish_reason: message.tool_calls ? "tool_calls" : "stop" }],
        usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    });
    if (delay) await setTimeout(delay);
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
    response.end(body);
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => console.log(server.address().port));

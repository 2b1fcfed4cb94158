// A scripted model provider: OpenAI chat completions over HTTP, each scenario below a path of its own.
import { createServer } from "node:http";

const json = (response, status, body, headers = {}) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
};

const toolCalls = (calls) =>
    calls?.map((call) => ({
        id: call.id,
        type: "function",
        function: { name: call.name, arguments: call.arguments },
    }));

const completion = ({ text, calls, finish }) => ({
    id: "c",
    object: "chat.completion",
    created: 1,
    model: "fake",
    choices: [
        {
            index: 0,
            message: { role: "assistant", content: text ?? null, tool_calls: toolCalls(calls) },
            finish_reason: finish ?? (calls ? "tool_calls" : "stop"),
        },
    ],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
});

const chunk = (delta, finish = null) =>
    `data: ${JSON.stringify({
        id: "c",
        object: "chat.completion.chunk",
        created: 1,
        model: "fake",
        choices: [{ index: 0, delta, finish_reason: finish }],
    })}\n\n`;

function* chunks({ text, pieces, calls, finish }) {
    for (const content of pieces ?? (text ? [text] : [])) yield chunk({ role: "assistant", content });
    for (const [index, call] of (calls ?? []).entries())
        yield chunk({ role: "assistant", tool_calls: [{ index, ...toolCalls([call])[0] }] });
    yield chunk({}, finish ?? (calls ? "tool_calls" : "stop"));
    yield "data: [DONE]\n\n";
}

// What one scenario's model says: `answers[n]` to the n-th request. A request without an answer hangs;
// one after the last of them has an answer that no record holds.
export class Script {
    constructor(answers, onClosed) {
        this.answers = new Map(answers.map((answer) => [answer.n, answer]));
        this.last = answers.length ? Math.max(...this.answers.keys()) : Infinity;
        this.requests = [];
        this.onClosed = onClosed;
        this.gates = new Map();
        this.arrivals = new Map();
    }

    // Hold the n-th answer back; what is returned lets it go.
    hold(n) {
        let release;
        this.gates.set(n, new Promise((resolve) => (release = resolve)));
        return release;
    }

    // Resolves when the n-th request has come.
    asked(n) {
        if (this.requests.length > n) return Promise.resolve();
        return new Promise((resolve) => this.arrivals.set(n, resolve));
    }

    async answer(body, response) {
        const n = this.requests.push(body) - 1;
        this.arrivals.get(n)?.();
        response.on("close", () => response.writableEnded || this.onClosed());
        await this.gates.get(n);
        const answer = this.answers.get(n) ?? (n > this.last && { text: `unscripted#${n}` });
        if (!answer) return;
        if (answer.cut === "connection") return void response.socket.destroy();
        if (answer.status) {
            const error = { error: { message: `mock ${answer.status}`, type: "mock_error" } };
            return json(response, answer.status, answer.body ?? error, answer.headers);
        }
        if (answer.raw !== undefined) return this.#raw(answer, body, response);
        if (!body.stream) return json(response, 200, completion(answer));
        return this.#stream(answer, response);
    }

    #raw({ raw, ctype, cut }, body, response) {
        const type = ctype ?? (body.stream ? "text/event-stream" : "application/json");
        response.writeHead(200, { "content-type": type });
        if (cut) response.write(raw, () => setTimeout(() => response.socket.destroy(), 50));
        else response.end(raw);
    }

    async #stream(answer, response) {
        response.writeHead(200, { "content-type": "text/event-stream" });
        const pieces = [...chunks(answer)];
        const last = pieces.pop();
        for (const [sent, piece] of pieces.entries()) {
            if (sent === answer.stopAfter) {
                if (answer.cut) setTimeout(() => response.socket?.destroy(), 50);
                return; // The rest never comes.
            }
            response.write(piece);
            await new Promise((resolve) => setImmediate(resolve));
        }
        response.end(last);
    }
}

// Serves every script of `scripts` (a map from path segment to Script); resolves to the server's base URL.
export async function serveModel(scripts) {
    const server = createServer(async (request, response) => {
        let text = "";
        for await (const part of request) text += part;
        const script = scripts.get(decodeURIComponent(request.url.split("/")[1]));
        if (!script || !request.url.endsWith("/chat/completions"))
            return json(response, 404, { error: { message: `nothing is at ${request.url}`, type: "mock_error" } });
        await script.answer(JSON.parse(text), response);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    return { base: `http://127.0.0.1:${server.address().port}`, close: () => server.closeAllConnections() || server.close() };
}

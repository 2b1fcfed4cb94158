// The sample of the documentation: a terminal tool that clears the context. Prints what it saw as JSON.
// Arguments: the way to the runtime (uri, stdio or tcp), the runtime (an address or a program), the model's base URL.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.NODE_MODULES}/`);
const { approveAll, CopilotClient, defineTool, RuntimeConnection } = await import(
    pathToFileURL(require.resolve("@github/copilot-sdk").replace("/cjs/index.js", "/index.js")).href
);

const [way, runtime, baseUrl] = process.argv.slice(2);
const connection = {
    uri: () => RuntimeConnection.forUri(runtime),
    stdio: () => RuntimeConnection.forStdio({ path: runtime }),
    tcp: () => RuntimeConnection.forTcp({ path: runtime }),
}[way]();
const client = new CopilotClient({ connection });

let session;
const clearContext = defineTool("clear_context", {
    description: "Clear the conversation and start a fresh context window.",
    parameters: { type: "object", properties: { prompt: { type: "string" } }, required: ["prompt"] },
    isTerminal: true,
    defer: "never",
    handler: async ({ prompt }) => {
        const { messagesCleared } = await session.rpc.history.clearContext({ prompt });
        return `Cleared ${messagesCleared} messages.`;
    },
});

session = await client.createSession({
    model: "fake",
    provider: { type: "openai", baseUrl, apiKey: "key" },
    tools: [clearContext],
    systemMessage: { mode: "replace", content: "You are terse." },
    onPermissionRequest: approveAll,
});
const kinds = [];
session.on((event) => kinds.push(event.type));
const replies = [];
for (const prompt of ["hello", "please start over"]) {
    replies.push((await session.sendAndWait({ prompt }, 30_000))?.data.content);
}
const kept = (await session.getEvents()).length;
await session.disconnect();
await client.stop();
console.log(JSON.stringify({ replies, kinds, kept }));

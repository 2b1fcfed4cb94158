// A session whose client rewrites sections of the system message, which another client then does in another way.
// Arguments: the runtime, the model's base URL. Prints, as JSON, what the functions of each client were given.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.NODE_MODULES}/`);
const { approveAll, CopilotClient, RuntimeConnection } = await import(
    pathToFileURL(require.resolve("@github/copilot-sdk").replace("/cjs/index.js", "/index.js")).href
);

const [runtime, baseUrl] = process.argv.slice(2);
const LONGEST = 60_000; // milliseconds that a turn may take on a busy machine

const configured = (mark, given) => ({
    model: "fake",
    provider: { type: "openai", baseUrl, apiKey: "key" },
    systemMessage: {
        mode: "customize",
        sections: {
            identity: {
                action: (content) => {
                    given.push(["identity", content]);
                    return `${mark}${content}${mark}`;
                },
            },
            tone: {
                action: async (content) => {
                    await Promise.resolve();
                    given.push(["tone", content]);
                    return `${mark}tone${mark}`;
                },
            },
            custom_instructions: {
                action: () => {
                    throw new Error("no text comes of this");
                },
            },
            safety: { action: "replace", content: "SAFE" },
        },
        content: "MORE",
    },
    organizationCustomInstructions: "RULES",
    onPermissionRequest: approveAll,
});

const client = new CopilotClient({ connection: RuntimeConnection.forStdio({ path: runtime }) });
const [first, second] = [[], []];
const session = await client.createSession(configured("*", first));
for (const prompt of ["one", "two"]) await session.sendAndWait({ prompt }, LONGEST);
await session.disconnect();
const again = await client.resumeSession(session.sessionId, configured("+", second));
await again.sendAndWait({ prompt: "three" }, LONGEST);
await client.stop();
console.log(JSON.stringify([first, second]));

// Sessions of the official client, all at once, against a runtime that listens.
//
//     EXEUNT_INTEROP_MODULES=FOLDER node client.mjs JOB
//
// JOB is JSON: runtime (a path), tcp (or else the standard streams), model (a base URL), sessions, rounds.
//
// Prints a line of JSON when a part is over, and waits for a line on standard input before the next: the caller reads
// the processes' clocks in between.
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const { CopilotClient, RuntimeConnection, approveAll } = createRequire(
    join(process.env.EXEUNT_INTEROP_MODULES, "any.js"),
)("@github/copilot-sdk");
const { runtime, tcp, model, sessions: count, rounds } = JSON.parse(process.argv[2]);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const connection = RuntimeConnection[tcp ? "forTcp" : "forStdio"]({ path: runtime });
const client = new CopilotClient({ connection, useLoggedInUser: false, logLevel: "error" });
await client.start();

function tools(session) {
    const parameters = { type: "object", properties: { text: { type: "string" } } };
    const clear = async ({ prompt }) => {
        const { messagesCleared } = await session().rpc.history.clearContext({ prompt });
        return `Cleared ${messagesCleared}`;
    };
    const seed = { type: "object", properties: { prompt: { type: "string" } }, required: ["prompt"] };
    return [
        { name: "echo", description: "Say it again.", parameters, skipPermission: true, handler: ({ text }) => text },
        {
            name: "clear_context",
            description: "Start anew.",
            parameters: seed,
            skipPermission: true,
            isTerminal: true,
            handler: clear,
        },
    ];
}

async function create() {
    let session;
    session = await client.createSession({
        model: "fake",
        systemMessage: { mode: "replace", content: "You are a helper." },
        availableTools: ["custom:*"],
        provider: { type: "openai", baseUrl: model, apiKey: "a-key-of-this-test" },
        onPermissionRequest: approveAll,
        tools: tools(() => session),
    });
    return session;
}

async function part(name, work) {
    const began = performance.now();
    const took = (await work()) ?? [];
    const seconds = (performance.now() - began) / 1000;
    console.log(JSON.stringify({ part: name, runtime: client.cliProcess.pid, seconds, milliseconds: took }));
    await lines.next();
}

const turns = (prompt, times) => async () => {
    const took = [];
    const one = async (session) => {
        for (let n = 0; n < times; n += 1) {
            const began = performance.now();
            await session.sendAndWait(`${prompt} ${n}`, 600_000);
            took.push(performance.now() - began);
        }
    };
    await Promise.all(sessions.map(one));
    return took;
};

const sessions = [];
await part("ready", async () => {});
await part("create", async () => void sessions.push(...(await Promise.all(Array.from({ length: count }, create)))));
await part("warm", turns("say", 1));
await part("plain", turns("say", rounds));
await part("tool", turns("tool", rounds));
await part("clear", turns("clear", rounds));
await part("leave", async () => void (await Promise.all(sessions.map((session) => session.disconnect()))));
await client.forceStop();
process.exit(0);

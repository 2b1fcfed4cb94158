// Plays scenarios with the official client against one runtime; writes what each saw, one JSON object a line.
//
//     EXEUNT_INTEROP_MODULES=FOLDER node play.mjs < request.json
//
// The request: {runtime: {path, args, env}, parallel, limit (ms for each), scenarios: [{name, script, sent}]}.
import { readFileSync } from "node:fs";

import { Script, serveModel } from "./model.mjs";
import { scenarios as aborts } from "./scenarios/aborts.mjs";
import { scenarios as clears } from "./scenarios/clears.mjs";
import { scenarios as failures } from "./scenarios/failures.mjs";
import { scenarios as hooks } from "./scenarios/hooks.mjs";
import { scenarios as lives } from "./scenarios/lives.mjs";
import { scenarios as outcomes } from "./scenarios/outcomes.mjs";
import { scenarios as queues } from "./scenarios/queues.mjs";
import { scenarios as rejections } from "./scenarios/rejections.mjs";
import { scenarios as sessions } from "./scenarios/sessions.mjs";
import { Stage, pause, startClient } from "./stage.mjs";

const scenarios = {
    ...aborts,
    ...clears,
    ...failures,
    ...hooks,
    ...lives,
    ...outcomes,
    ...queues,
    ...rejections,
    ...sessions,
};

const { runtime, parallel, limit, scenarios: wanted } = JSON.parse(readFileSync(0, "utf8"));
runtime.env = { ...process.env, ...runtime.env };
const scripts = new Map();
const model = await serveModel(scripts);
const client = startClient(runtime);
await client.start();

function answersOf(script, overrides = {}) {
    const answers = new Map(script.map((answer) => [answer.n, answer]));
    for (const [n, change] of Object.entries(overrides)) answers.set(+n, { ...answers.get(+n), n: +n, ...change });
    return [...answers.values()];
}

async function playOne({ name, script, sent }) {
    const scenario = scenarios[name];
    if (!scenario) return { name, error: "no such scenario" };
    const { play, answers } = typeof scenario === "function" ? { play: scenario } : scenario;
    const began = performance.now();
    let stage;
    const scripted = new Script(answersOf(script, answers), () => stage.note("model_conn_closed"));
    scripts.set(name, scripted);
    stage = new Stage({ name, sent, script: scripted, base: model.base, client, runtime });
    const problem = await Promise.race([
        play(stage).then(
            () => undefined,
            (error) => `${error.stack}`,
        ),
        pause(limit).then(() => `not done after ${limit} ms`),
    ]);
    // Events that are on their way when the last answer comes.
    await pause(30);
    const { events, notes } = stage;
    const seconds = (performance.now() - began) / 1000;
    const requests = scripted.requests.map(({ messages, tools }) => ({ messages, tools }));
    const outcome = structuredClone({ name, seconds, error: problem, events, notes, requests });
    await stage.session?.disconnect().catch(() => {});
    await stage.close();
    return outcome;
}

const queue = [...wanted];
async function worker() {
    for (let next = queue.shift(); next; next = queue.shift())
        process.stdout.write(`${JSON.stringify(await playOne(next))}\n`);
}
await Promise.all(Array.from({ length: parallel }, worker));
await client.forceStop();
model.close();
process.exit(0);

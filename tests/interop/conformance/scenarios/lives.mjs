// Sessions that go and come back: disconnects, resumes, new processes, kills.
import { pause } from "../stage.mjs";

const never = () => new Promise(() => {});
const types = (events) => events.map((event) => event.type);

const lastRequest = (stage) => {
    const { messages } = stage.script.requests.at(-1);
    stage.note(
        "LAST REQ",
        messages.map(({ role, content, tool_calls }) => {
            const calls = tool_calls ? `[${tool_calls.map((call) => call.function.name)}]` : "";
            const text = `${content}`.replace(/<current_datetime>.*<\/current_datetime>\s*/, "<DT>");
            return `${role}:${text.slice(0, 60)}${calls}`;
        }),
    );
};

// Leave the session and take it up again in a runtime of its own, as after a restart.
const newProcess = async (stage, changes) => {
    const { sessionId } = stage.session;
    await stage.session.disconnect();
    await stage.client.stop();
    await stage.ownRuntime();
    return stage.resume(sessionId, changes);
};

const truncate = (stage, eventId) =>
    stage.try("truncate", "truncate err", () => stage.session.rpc.history.truncate({ eventId }));

// Play `live`, look at the history by one more message, then look again after a resume.
const replay = (live, tools = (stage) => [stage.clearTool()]) =>
    async (stage) => {
        await stage.ownRuntime();
        const made = tools(stage);
        await stage.open({ tools: made });
        await live(stage);
        await stage.turn("live check");
        lastRequest(stage);
        await newProcess(stage, { tools: [stage.clearTool()] });
        await stage.turn("resume check");
        lastRequest(stage);
    };

const go = (stage) => stage.turn("go");
const clearThen = (then) => (stage) => [stage.clearTool({ then: (text) => then(stage, text) })];

// Kill the runtime when `ready`, then resume in a new one.
const crash = (tools, ready, { resume = {}, config = () => ({}), after = true } = {}) =>
    async (stage) => {
        await stage.ownRuntime();
        const made = tools(stage);
        await stage.open({ tools: made, ...config(stage) });
        await stage.turn("zero");
        await stage.send("go");
        await ready(stage);
        await pause(400); // The reference writes with a delay.
        await stage.kill();
        stage.note("--- killed runtime", 1);
        await stage.ownRuntime();
        await stage.resume(stage.session.sessionId, { tools: made, ...resume });
        stage.note("--- resumed; sending", 1);
        if (after) return void (await stage.turn("after crash"));
        const idles = stage.idles();
        await stage.send("after crash");
        await pause(1500);
        if (stage.idles() === idles) stage.note("TIMEOUT waiting idle", idles + 1);
    };

const clearAndSlow = (stage) => [stage.tool("slow", { after: never }), stage.clearTool({ then: never })];
const inTool = (stage) => stage.saw("external_tool.requested");
const inPermission = (stage) => stage.saw("permission.requested");
const askForEver = () => ({ onPermissionRequest: never });
const goOn = { resume: { continuePendingWork: true }, after: false };

// Kill the runtime some time after a clear has been told.
const killAfter = (ms) => async (stage) => {
    await stage.ownRuntime();
    await stage.open({ tools: [stage.clearTool({ then: never })] });
    await stage.turn("warm");
    await stage.send("go");
    await stage.cleared();
    await pause(ms);
    await stage.kill();
    await stage.ownRuntime();
    await stage.resume(undefined, { suppressResumeEvent: true });
    const kept = types(await stage.session.getEvents());
    // Before a handler may run, its call is kept; what is told of it meanwhile may be cut off by the kill.
    stage.note("disk after kill", kept.slice(0, kept.lastIndexOf("tool.execution_start") + 1 || kept.length));
};

// Kill with a call open, resume so that it stays open, and answer it by its old id.
const pending = (event, answer, options = {}) =>
    async (stage) => {
        await stage.ownRuntime();
        const slow = stage.tool("slow", { after: never, ...options });
        const onPermissionRequest = event === "permission.requested" ? { onPermissionRequest: never } : {};
        await stage.open({ tools: [slow], ...onPermissionRequest });
        await stage.send("go");
        await stage.saw(event);
        await pause(400);
        await stage.kill();
        stage.note("killed", 1);
        await stage.ownRuntime();
        const again = stage.tool("slow", { result: "slow ok after resume", ...options });
        const changes = { tools: [again], continuePendingWork: true, ...onPermissionRequest };
        await stage.resume(stage.session.sessionId, changes);
        const events = await stage.session.getEvents();
        stage.note("events", types(events));
        const { requestId } = events.find(({ type }) => type === event).data;
        stage.note("handle", await answer(stage.session.rpc, requestId));
        await stage.saw("session.idle");
        await stage.turn("after");
    };
const lateResult = (rpc, requestId) => rpc.tools.handlePendingToolCall({ requestId, result: "late result" });
const approve = (rpc, requestId) =>
    rpc.permissions.handlePendingPermissionRequest({ requestId, result: { kind: "approve-once" } });

export const scenarios = {
    resume_after_clear: async (stage) => {
        await stage.ownRuntime();
        const tools = [stage.clearTool()];
        await stage.open({ tools });
        await stage.turn("old question");
        await stage.turn("clear please");
        await newProcess(stage, { tools });
        stage.note("--- new process", 1);
        await stage.turn("after resume q");
        stage.note("getEvents", types(await stage.session.getEvents()));
    },
    resume_after_nonterminal_clear: async (stage) => {
        await stage.ownRuntime();
        const tools = [stage.clearTool({ terminal: false })];
        await stage.open({ tools });
        await stage.turn("old question");
        await stage.turn("clear please");
        await newProcess(stage, { tools });
        await stage.turn("after resume q");
    },
    async resume_unknown(stage) {
        await stage.try(null, "err", () => stage.resume(crypto.randomUUID()));
    },
    async resume_tools_changed(stage) {
        const term = (result, more) => stage.tool("term", { result, ...more });
        await stage.open({ tools: [term("t ok", { terminal: true }), stage.tool("old")] });
        await stage.turn("one");
        await stage.session.disconnect();
        const tools = [term("t2 ok", { description: "new desc" }), stage.tool("fresh")];
        await stage.resume(undefined, { tools });
        await stage.turns(["two", "three", "four"]);
        stage.note("TOOLS", stage.script.requests.map(({ tools }) => `${tools.map((tool) => tool.function.name)}`));
    },
    async resume_no_tools(stage) {
        await stage.open({ tools: [stage.tool("term", { result: "t ok", terminal: true })] });
        await stage.turn("one");
        await stage.session.disconnect();
        await stage.resume();
        await stage.turn("two");
        const named = ({ tools }) => `${(tools ?? []).map((tool) => tool.function.name)}`;
        stage.note("TOOLS", stage.script.requests.map(named));
    },

    async disconnect_mid_tool(stage) {
        let finish;
        const after = ({ signal }) => {
            signal?.addEventListener("abort", () => stage.note("signal abort", 1));
            return new Promise((resolve) => (finish = resolve));
        };
        await stage.open({ tools: [stage.tool("slow", { result: "ok", after })] });
        await stage.send("go");
        await stage.saw("external_tool.requested");
        await stage.session.disconnect();
        stage.note("disconnected", 1);
        finish();
        await pause(50);
        await stage.resume(undefined, { tools: [stage.tool("slow")] });
        await stage.turn("after");
    },
    async disconnect_after_clear_before_seed(stage) {
        const then = () => {
            stage.note("cleared", 1);
            return never();
        };
        await stage.open({ tools: [stage.clearTool({ then })] });
        const { sessionId } = stage.session;
        await stage.send("go");
        await stage.cleared();
        await stage.session.disconnect();
        await stage.resume(sessionId, { tools: [stage.clearTool()] });
        await stage.turn("after");
    },

    replay_model_error: replay(go),
    replay_args_array: replay(go),
    replay_two_clears: replay(go, (stage) => [
        stage.clearTool({
            before: ({ toolCallId }) => toolCallId === "call_2" && stage.cleared(),
        }),
    ]),
    replay_par_other: replay(go, (stage) => [
        stage.clearTool(),
        stage.tool("other", { result: "other", after: () => stage.cleared() }),
    ]),
    replay_rejected_clear: replay(
        go,
        clearThen(() => ({ textResultForLlm: "rej", resultType: "rejected" })),
    ),
    replay_throw_clear: replay(
        async (stage) => {
            await stage.turn("zero");
            await stage.turn("go");
        },
        clearThen(() => {
            throw new Error("after clear");
        }),
    ),
    replay_steer_after_clear: replay(
        go,
        clearThen(async (stage, text) => {
            stage.note("cleared", 1);
            await stage.send({ prompt: "steer", mode: "immediate" });
            return "d";
        }),
    ),
    replay_abort_after_clear: replay(
        async (stage) => {
            await stage.send("go");
            await stage.cleared();
            await stage.session.abort();
            await stage.saw("session.idle");
        },
        clearThen((stage) => {
            stage.note("cleared", 1);
            return never();
        }),
    ),

    crash_mid_model: crash(clearAndSlow, (stage) => stage.script.asked(1)),
    crash_mid_tool: crash(clearAndSlow, inTool),
    crash_mid_tool_continue: crash(clearAndSlow, inTool, goOn),
    crash_mid_permission: crash(clearAndSlow, inPermission, { config: askForEver }),
    crash_mid_permission_continue: crash(clearAndSlow, inPermission, { ...goOn, config: askForEver }),
    crash_mid_clear: crash(clearAndSlow, (stage) => stage.cleared()),

    kill_delay_0_0: killAfter(0),
    kill_delay_0_1: killAfter(0),
    kill_delay_10_2: killAfter(10),
    kill_delay_50_3: killAfter(50),
    kill_delay_100_4: killAfter(100),
    kill_delay_200_5: killAfter(200),

    pending_continue_tool: pending("external_tool.requested", lateResult, { terminal: true }),
    pending_continue_tool_ord: pending("external_tool.requested", lateResult),
    pending_continue_perm: pending("permission.requested", approve),

    async truncate_after_clear(stage) {
        await stage.open({ tools: [stage.clearTool()] });
        for (const prompt of ["q1", "q2", "clear"]) await stage.turn(prompt);
        const events = await stage.session.getEvents();
        const { id } = events.filter(({ type }) => type === "user.message")[1];
        await truncate(stage, id);
        stage.note("events", types(await stage.session.getEvents()));
        await stage.turn("again");
    },
    async truncate_to_seed(stage) {
        await stage.open({ tools: [stage.clearTool()] });
        for (const prompt of ["q1", "clear"]) await stage.turn(prompt);
        const events = await stage.session.getEvents();
        const cleared = events.findIndex(({ type }) => type === "session.context_cleared");
        const seed = events.slice(cleared).find(({ type }) => type === "user.message");
        await truncate(stage, seed.id);
        await stage.turn("again");
    },

    async saw_runtime_death(stage) {
        await stage.ownRuntime();
        await stage.open();
        const waiting = stage.try(null, "err", () => stage.session.sendAndWait("go", 3000));
        await stage.saw("assistant.turn_start");
        await stage.script.asked(0);
        await pause(100); // The answer to `send` may come behind the events.
        await stage.kill();
        await waiting;
    },
};

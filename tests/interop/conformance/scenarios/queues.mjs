// Messages sent while a turn runs: queued ones and steering ones, with and without a clear.
const queued = (prompt) => ({ prompt, mode: "enqueue" });
const steer = (prompt) => ({ prompt, mode: "immediate" });

// A tool in whose handler `during` runs.
const inTool = (name, result, during, more = {}) =>
    async (stage) => {
        const after = () => during(stage);
        await stage.open({ tools: [stage.tool(name, { result, after, ...more })] });
        await stage.turn("one");
    };

// The documented clear tool, with messages sent before it clears and after.
const aroundClear = (before, after, { pending = false, result } = {}) =>
    async (stage) => {
        const send = async (messages) => {
            for (const message of messages) await stage.send(message);
        };
        const tool = stage.clearTool({
            async before() {
                if (before.length) stage.note("in handler", 1);
                await send(before);
            },
            async then(text) {
                if (after.length) stage.note("cleared", 1);
                await send(after);
                if (pending) stage.note("pending", await stage.session.rpc.queue.pendingItems());
                return result ?? text;
            },
        });
        await stage.open({ tools: [tool] });
        await stage.turn("one");
    };

const done = { result: "done" };

export const scenarios = {
    async q_steer_idle(stage) {
        await stage.open();
        await stage.turns();
    },

    q_enqueue_two: inTool("slow", "slow ok", async (stage) => {
        await stage.send(queued("two"));
        await stage.send("three");
        stage.note("pending", await stage.session.rpc.queue.pendingItems());
    }),

    q_steer_during_tool: inTool("slow", "slow ok", async (stage) => {
        await stage.send(steer("steer1"));
        await stage.send(queued("queued"));
        await stage.send(steer("steer2"));
        stage.note("pending", await stage.session.rpc.queue.pendingItems());
    }),

    q_steer_with_terminal: inTool(
        "term",
        "ok",
        async (stage) => {
            await stage.send(queued("queued"));
            await stage.send(steer("steer1"));
        },
        { terminal: true },
    ),

    async q_steer_during_final_model_call(stage) {
        const release = stage.script.hold(0);
        await stage.open();
        await stage.send("one");
        await stage.script.asked(0);
        for (const message of [queued("queued"), steer("steer1"), steer("steer2")]) await stage.send(message);
        release();
        await stage.saw("session.idle");
    },

    clear_queue_before: aroundClear([queued("queued before clear")], []),
    clear_queue_after: aroundClear([], [queued("queued after clear")], { pending: true, ...done }),
    clear_steer_before: aroundClear([steer("steer before clear")], []),
    clear_steer_after: aroundClear([], [steer("steer after clear")], done),
    clear_all_mixed: aroundClear(
        [queued("q-before"), steer("st-before")],
        [queued("q-after"), steer("st-after")],
        done,
    ),

    async send_from_handler(stage) {
        const then = async () => {
            await stage.send("sent in handler");
            return "done";
        };
        await stage.open({ tools: [stage.clearTool({ then })] });
        await stage.turn("one");
    },

    async send_prepend_display_wait(stage) {
        const send = (params) => stage.raw("session.send", { sessionId: stage.session.sessionId, ...params });
        const after = async () => {
            await send({ prompt: "q1" });
            await send({ prompt: "q2 prepended", prepend: true, displayPrompt: "DISPLAY" });
        };
        await stage.open({ tools: [stage.tool("slow", { result: "ok", after })] });
        await stage.turn("one");
        stage.note("wait result", await send({ prompt: "waited", wait: true }));
        stage.note("wait ms", "waited");
    },
};

// Aborts, in each state in which a session can be.
import { pause } from "../stage.mjs";

const slow = (stage) => {
    let finish;
    const finished = new Promise((resolve) => (finish = resolve));
    const tool = stage.tool("slow", { after: () => finished });
    return { tool, finish };
};

const abortIn = async (stage, prompt, ready) => {
    await stage.send(prompt);
    await ready;
    await stage.session.abort();
};

export const scenarios = {
    async abort_idle(stage) {
        await stage.open();
        stage.note("abort idle", await stage.raw("session.abort", { sessionId: stage.session.sessionId }));
        await stage.turns();
        stage.note("abort idle", await stage.raw("session.abort", { sessionId: stage.session.sessionId }));
    },

    async abort_during_model(stage) {
        await stage.open();
        await abortIn(stage, "one", stage.script.asked(0));
        stage.note("abort result");
        await stage.saw("session.idle");
        await stage.turn("next");
    },

    abort_streaming: {
        answers: { 0: { pieces: ["par", "tial ", "text"], stopAfter: 2 } },
        async play(stage) {
            await stage.open({ streaming: true });
            await abortIn(stage, "one", stage.saw("assistant.message_delta", 2));
            stage.note("abort result");
            await stage.saw("session.idle");
            await stage.turn("next");
        },
    },

    async abort_reasons(stage) {
        await stage.open();
        await stage.send("one");
        await stage.script.asked(0);
        await stage.saw("assistant.turn_start");
        const { sessionId } = stage.session;
        stage.note("r", await stage.raw("session.abort", { sessionId, reason: "user_abort" }));
        await stage.saw("session.idle");
    },

    async abort_during_tool(stage) {
        const { tool, finish } = slow(stage);
        const handler = tool.handler;
        tool.handler = (args, invocation) => {
            invocation.signal?.addEventListener("abort", () => stage.note("signal aborted", 1));
            return handler(args, invocation);
        };
        await stage.open({ tools: [tool] });
        await abortIn(stage, "one", stage.saw("external_tool.requested"));
        stage.note("abort result");
        await stage.saw("session.idle");
        finish();
        await stage.turn("next");
    },

    async abort_with_queue(stage) {
        const { tool, finish } = slow(stage);
        await stage.open({ tools: [tool] });
        await stage.send("one");
        await stage.saw("external_tool.requested");
        await stage.send({ prompt: "queued", mode: "enqueue" });
        await stage.send({ prompt: "steer", mode: "immediate" });
        await stage.session.abort();
        await stage.saw("session.idle");
        finish();
        await pause(20);
        stage.note("pending", await stage.session.rpc.queue.pendingItems());
        await stage.turn("next");
    },

    async abort_after_clear_in_handler(stage) {
        let finish;
        const finished = new Promise((resolve) => (finish = resolve));
        const then = async (text) => {
            stage.note("cleared", 1);
            await finished;
            return text;
        };
        await stage.open({ tools: [stage.clearTool({ then })] });
        await abortIn(stage, "one", stage.cleared());
        stage.note("abort");
        await stage.saw("session.idle");
        finish();
        await stage.turn("next");
    },

    async abort_then_clear_in_handler(stage) {
        const before = async () => {
            stage.note("in handler", 1);
            await stage.saw("session.idle");
        };
        await stage.open({ tools: [stage.clearTool({ before })] });
        await abortIn(stage, "one", stage.saw("external_tool.requested"));
        await stage.saw("session.idle");
        await pause(50);
        await stage.turn("next");
    },

    async abort_in_seed_turn(stage) {
        await stage.open({ tools: [stage.clearTool()] });
        await abortIn(stage, "go", stage.script.asked(1));
        await stage.saw("session.idle");
        await stage.turn("next");
    },
};

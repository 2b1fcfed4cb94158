// Clears that are refused.
import { pause } from "../stage.mjs";

const method = "session.history.clearContext";

export const scenarios = {
    async reject_idle(stage) {
        const session = await stage.open({ tools: [stage.clearTool()] });
        await stage.try(null, "err before any turn", () => stage.clear("x"));
        await stage.turns();
        await stage.try(null, "err idle", () => stage.clear("x"));
        const { sessionId } = session;
        await session.disconnect();
        await stage.try(null, "err after disconnect", () => stage.clear("x"));
        await stage.try(null, "err raw after disconnect", () => stage.raw(method, { sessionId, prompt: "x" }));
        await stage.try(null, "err raw unknown session", () => stage.raw(method, { sessionId: "nope", prompt: "x" }));
        await stage.try(null, "err raw no session", () => stage.raw(method, { prompt: "x" }));
    },

    async reject_during_model_call(stage) {
        const release = stage.script.hold(0);
        await stage.open({ tools: [stage.clearTool()] });
        await stage.send("hello");
        await stage.script.asked(0);
        await stage.try(null, "err during model call", () => stage.clear("x"));
        release();
        await stage.saw("session.idle");
    },

    async reject_bad_prompts(stage) {
        const prompts = [{ prompt: "" }, { prompt: "   \n\t " }, {}, { prompt: null }, { prompt: 5 }];
        const bad = [...prompts, { prompt: ["a"] }, { prompt: { a: 1 } }, "str", null];
        const result = async (_args, { sessionId }) => {
            for (const params of bad) {
                const whole = params !== null && typeof params === "object" ? { sessionId, ...params } : params;
                await stage.try(null, `err ${JSON.stringify(params)}`, () => stage.raw(method, whole));
            }
            return "tried";
        };
        await stage.open({ tools: [stage.tool("bad", { result })] });
        await stage.turns();
    },

    async fire_and_forget_clear(stage) {
        const waits = [0, 1, 5, 20];
        let errors = 0;
        const result = () => {
            const wait = waits.shift();
            const late = stage.saw("tool.execution_complete", 4 - waits.length);
            late.then(async () => {
                await pause(wait);
                await stage.clear("late seed").catch((error) => {
                    stage.note(`ff clear err ${wait}`, error.message.slice(0, 120));
                    errors += 1;
                });
            });
            return "ret";
        };
        for (const [n, prompt] of stage.sent.entries()) {
            await stage.open({ tools: [stage.tool("ff", { result, terminal: true })] });
            await stage.turn(prompt);
            while (errors <= n) await pause(5);
        }
    },
};

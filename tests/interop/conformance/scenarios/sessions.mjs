// Sessions as such: what they are made with, what they list, what sendAndWait says, what the model is told.
import { pause } from "../stage.mjs";

const names = ({ tools }) => `${(tools ?? []).map((tool) => tool.function.name)}`;
const one = (config) => async (stage) => {
    await stage.open(config?.(stage));
    await stage.turns();
};
const numbered = (stage, count, more) =>
    Array.from({ length: count }, (_, n) =>
        silent(stage, `t${n}`, `r${n}`, { description: `tool number ${n}`, ...more }),
    );
// A tool whose calls are not noted.
const silent = (stage, name, result, more) => ({ ...stage.tool(name, more), handler: () => result });
const toolNames = (stage) => stage.note("TOOLS", stage.script.requests.map(names));
const parameters = { type: "object", properties: { path: { type: "string" } } };

export const scenarios = {
    empty_prompt_send: one(),
    user_slash: one(),
    empty_avail: async (stage) => {
        await stage.open({ tools: [stage.tool("t1")], availableTools: [] });
        await stage.turns();
        toolNames(stage);
    },
    async plain(stage) {
        const needed = { type: "object", properties: { a: { type: "number" } }, required: ["a"] };
        const t1 = stage.tool("t1", { description: "D1", parameters: needed, isTerminal: true, metadata: { m: 1 } });
        const t2 = { name: "t2", handler: () => "ok", skipPermission: true };
        await stage.open({ tools: [t1, t2] });
        await stage.turns();
        toolNames(stage);
        stage.note("TOOLDEFS", stage.script.requests[0].tools);
    },
    async dup_names(stage) {
        const d = (description) => stage.tool("d", { description, parameters: undefined });
        await stage.open({ tools: [d("one"), d("two")] });
        await stage.turns();
        stage.note("tools", stage.script.requests[0].tools.map((tool) => tool.function));
    },
    async bad_names(stage) {
        for (const name of ["has space", "a.b", "ünï", "x".repeat(70), "dash-ok", ""]) {
            const requests = stage.script.requests.length;
            await stage.try(null, `err ${name}`, async () => {
                await stage.open({ tools: [stage.tool(name)] });
                await stage.turn("go");
                stage.note(`ok ${name}`, stage.script.requests.slice(requests).map(names));
                await stage.session.disconnect();
            });
        }
    },
    async many_auto(stage) {
        await stage.open({ tools: numbered(stage, 40, { defer: "auto" }) });
        await stage.turns();
        toolNames(stage);
    },
    async many_auto_builtin(stage) {
        const tools = [...numbered(stage, 40, { defer: "auto" }), stage.tool("never1", { defer: "never" })];
        await stage.open({ tools, availableTools: undefined });
        await stage.turns();
        toolNames(stage);
    },
    async many_thresh(stage) {
        const tools = [...numbered(stage, 5, { defer: "auto" }), stage.tool("never1", { defer: "never" })];
        const toolSearch = { enabled: true, deferThreshold: 3 };
        await stage.open({ tools, availableTools: undefined, toolSearch });
        await stage.turns();
        toolNames(stage);
    },
    async default_tools(stage) {
        await stage.open({ tools: [stage.tool("t1")], availableTools: undefined, systemMessage: undefined });
        await stage.turns();
        toolNames(stage);
    },
    builtin_clash: {
        answers: { 0: { text: "no clash" } },
        async play(stage) {
            await stage.open({ tools: [stage.tool("view", { parameters })], availableTools: undefined });
            await stage.turns();
            toolNames(stage);
        },
    },
    async builtin_override(stage) {
        const more = { description: "MY VIEW", parameters, overridesBuiltInTool: true, isTerminal: true };
        await stage.open({ tools: [silent(stage, "view", "my view", more)], availableTools: undefined });
        await stage.turns();
        toolNames(stage);
        stage.note("TOOLDEFS", stage.script.requests[0].tools.filter((tool) => tool.function.name === "view"));
    },
    async bash_outside_clear(stage) {
        await stage.open({ availableTools: undefined });
        await stage.send("go");
        await stage.saw("tool.execution_start");
        await pause(500);
        await stage.try("clear", "clear err", () => stage.clear("bash seed"));
        await stage.saw("session.idle");
        await stage.turn("next");
    },
    async subagent_clear(stage) {
        const helper = { name: "helper", displayName: "Helper", description: "h", prompt: "HELPER PROMPT" };
        await stage.open({ tools: [stage.clearTool()], availableTools: undefined, customAgents: [helper] });
        await stage.turns();
        stage.note("reqs", stage.script.requests.map(({ messages }) => messages.map(({ role }) => role)));
    },
    async sys_append(stage) {
        await stage.open({ systemMessage: { mode: "append", content: "Respond concisely." } });
        await stage.turns();
    },
    async binary_result(stage) {
        const image = { data: "iVBORw0KGgo=", mimeType: "image/png", type: "image" };
        const result = { textResultForLlm: "img", resultType: "success", binaryResultsForLlm: [image] };
        await stage.open({ tools: [stage.tool("img", { result })] });
        await stage.turns();
        stage.note("msgs", stage.script.requests.at(-1).messages.slice(1));
    },
    async big_result(stage) {
        const big = stage.tool("big", { result: "CUT" });
        const handler = async (...call) => (await big.handler(...call)) && "B".repeat(200_000);
        await stage.open({ tools: [{ ...big, handler }] });
        await stage.turns();
    },
    async tool_hold_130s(stage) {
        const after = async ({ signal }) => {
            signal?.addEventListener("abort", () => stage.note("signal abort", 1));
            await pause(130_000);
        };
        await stage.open({ tools: [stage.tool("slow", { result: "ok", after })] });
        await stage.turns();
    },
    async delete_list(stage) {
        const { sessionId } = await stage.open();
        await stage.turns();
        await stage.session.disconnect();
        const list = async () => (await stage.client.listSessions()).filter((s) => s.sessionId === sessionId).length;
        stage.note("meta", await stage.client.getSessionMetadata(sessionId));
        stage.note("lastId", typeof (await stage.client.getLastSessionId()) === "string");
        await stage.client.deleteSession(sessionId);
        stage.note("deleted", (await list()) > 0);
        await stage.try(null, "del2 err", () => stage.client.deleteSession(sessionId));
        await stage.try(null, "resume deleted err", () => stage.resume(sessionId));
    },
    async saw_terminal(stage) {
        await stage.open({ tools: [stage.tool("t", { result: "ok", terminal: true })] });
        const { type, data } = await stage.session.sendAndWait("go");
        stage.note("r", { type, content: data.content, toolRequests: data.toolRequests.length });
    },
    async saw_timeout(stage) {
        const release = stage.script.hold(0);
        await stage.open();
        await stage.try(null, "sendAndWait err", () => stage.session.sendAndWait("go", 300));
        release();
        await stage.saw("session.idle");
    },
    async session_idle_bg(stage) {
        await stage.open();
        stage.note("r", (await stage.session.sendAndWait("hi")).type);
    },
};

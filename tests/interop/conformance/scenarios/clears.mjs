// clear_context: alone, after it, with other calls beside it, from elsewhere.
import { pause } from "../stage.mjs";

const withClear =
    (options = {}, others = () => []) =>
    async (stage) => {
        await stage.open({ tools: [stage.clearTool(options), ...others(stage)] });
        await stage.turns();
    };

// The clear's tool ends otherwise than in success.
const ends = (result) => withClear({ then: () => result });

// Another call in the clear's batch, faster or slower than the clear.
const beside = ({ clearAfter, otherAfter, ...other }) =>
    async (stage) => {
        const clear = stage.clearTool({ before: clearAfter && (() => clearAfter(stage)) });
        const after = otherAfter && (() => otherAfter(stage));
        await stage.open({ tools: [clear, stage.tool("other", { result: "other result", after, ...other })] });
        await stage.turns();
    };

// Two clears in one batch, the second when the first is done.
const twice =
    (then) =>
    async (stage) => {
        const before = ({ toolCallId }) => toolCallId === "call_2" && stage.cleared();
        await stage.open({ tools: [stage.clearTool({ before, then })] });
        await stage.turns();
    };
const slowly = async () => {
    await pause(150);
    return "slow done";
};

const secondClear = (wait) => async (stage) => {
    const then = async () => {
        await pause(wait);
        await stage.try("second ok", "second err", () => stage.clear("second seed"));
        return "done";
    };
    await stage.open({ tools: [stage.clearTool({ then })] });
    await stage.turns();
};

export const scenarios = {
    async clear_happy(stage) {
        await stage.open({ tools: [stage.clearTool()] });
        await stage.turns();
        stage.note("getEvents", (await stage.session.getEvents()).map((event) => event.type));
    },

    async chain_clears(stage) {
        await stage.open({ tools: [stage.clearTool()] });
        stage.note("sendAndWait", (await stage.session.sendAndWait("go")).data.content);
    },

    count_with_tools: withClear({}, (stage) => [stage.tool("echo", { result: "echo result" })]),
    clear_nonterminal: withClear({ terminal: false }),
    clear_nonterminal_more_tools: withClear({ terminal: false }, (stage) => [
        stage.tool("other", { result: "other result" }),
    ]),
    two_clears_two_turns_same_usermsg: withClear({ terminal: false }),
    whitespace_edges: withClear(),
    seed_slash: withClear(),
    source_system: withClear(),

    clear_then_throw: withClear({
        then() {
            throw new Error("after clear");
        },
    }),
    clear_then_failure: ends({ textResultForLlm: "fail text", resultType: "failure", error: "my err" }),
    clear_then_denied: ends({ textResultForLlm: "den text", resultType: "denied" }),
    clear_then_rejected: ends({ textResultForLlm: "rej text", resultType: "rejected" }),

    par_clear_other_faster: beside({ clearAfter: (stage) => stage.saw("external_tool.completed") }),
    par_clear_other_slower: beside({ otherAfter: () => pause(300) }),
    par_clear_other_first_in_batch: beside({ otherAfter: () => pause(300) }),
    par_clear_other_fails: beside({ otherAfter: (stage) => stage.cleared(), throws: "boom" }),
    par_two_clears: twice(),
    par_two_clears_staggered: twice(),
    par_two_clears_staggered2: twice(slowly),
    second_clear_same_handler: secondClear(0),
    second_clear_delayed: secondClear(100),

    async streaming_clear(stage) {
        await stage.open({ tools: [stage.clearTool()], streaming: true });
        await stage.turns();
    },

    async clear_then_more_tools_seeded(stage) {
        await stage.open({ tools: [stage.clearTool(), stage.tool("echo", { result: "e" })], streaming: true });
        await stage.turns();
    },

    async custom_system_section(stage) {
        const systemMessage = { mode: "customize", content: "EXTRA" };
        await stage.open({ tools: [stage.clearTool()], systemMessage });
        await stage.turns();
        const [first, second] = stage.script.requests.map(({ messages }) => messages[0].content);
        stage.note("same system", first === second);
    },

    async clear_from_outside_while_tool(stage) {
        let finish;
        const after = () => new Promise((resolve) => (finish = resolve));
        await stage.open({ tools: [stage.tool("slow", { after, terminal: true })] });
        await stage.send("one");
        await stage.saw("external_tool.requested");
        stage.note("outside clear", await stage.clear("outside seed"));
        finish();
        await stage.saw("session.idle");
        await stage.turn("next");
    },

    async clear_while_permission_pending(stage) {
        const onPermissionRequest = async () => {
            stage.note("perm pending", 1);
            stage.note("clear in perm", await stage.clear("perm seed"));
            return { kind: "approve-once" };
        };
        await stage.open({ tools: [stage.tool("slow", { result: "ok", terminal: true })], onPermissionRequest });
        await stage.turns();
    },

    async decl_only(stage) {
        const ext = { name: "ext", description: "ext", skipPermission: true, isTerminal: true };
        await stage.open({ tools: [ext] });
        await stage.send("go");
        await stage.saw("external_tool.requested");
        stage.note("clear while pending", await stage.clear("seed ext"));
        const { requestId } = stage.events.find((event) => event.type === "external_tool.requested").data;
        await stage.session.rpc.tools.handlePendingToolCall({ requestId, result: "fine" });
        await stage.saw("session.idle");
    },

    async extra_params(stage) {
        const result = async (_args, { sessionId }) => {
            const params = { sessionId, prompt: "seed", extra: 1, other: { a: 1 } };
            stage.note("ok extra", await stage.raw("session.history.clearContext", params));
            return "r";
        };
        await stage.open({ tools: [stage.tool("t", { result, terminal: true })] });
        await stage.turns();
    },

    async concurrent_sessions(stage) {
        const open = async (label, before) => {
            const session = await stage.open({ label, tools: [stage.clearTool({ session: () => session, before })] });
            return session;
        };
        // Both run at once; only which request the scripted model gets first is fixed.
        const a = await open("A", () => stage.script.asked(1));
        const b = await open("B", () => stage.script.asked(2));
        await b.send("go B");
        await stage.script.asked(0);
        await a.send("go A");
        await stage.saw("session.idle", 2);
    },

    async clear_cross_session(stage) {
        let finish;
        const after = () => new Promise((resolve) => (finish = resolve));
        const a = await stage.open({ label: "A", tools: [stage.tool("slowA", { result: "A ok", after })] });
        const b = await stage.open({ label: "B", tools: [stage.clearTool({ session: () => a })] });
        await stage.turn("A hello", a);
        await stage.turn("B go", b);
        await stage.send("A slow", a);
        await stage.saw("external_tool.requested", 1, (data) => data.toolName === "slowA");
        await stage.turn("B go", b);
        finish();
        await stage.saw("session.idle", 2, undefined, "A");
    },

    async tcp_uri_clear(stage) {
        const uri = await stage.listening();
        await stage.open({ tools: [stage.clearTool()], streaming: true });
        await stage.turns();
        await stage.resume(undefined, {}, await stage.connected(uri));
    },
};
const inPieces = (text) => ({ 1: { pieces: [...text] } });
scenarios.streaming_clear = { answers: inPieces("ab"), play: scenarios.streaming_clear };
scenarios.tcp_uri_clear = { answers: inPieces("ok"), play: scenarios.tcp_uri_clear };

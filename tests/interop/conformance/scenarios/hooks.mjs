// Hooks, and what each may change.
const told = (input) => {
    const { sessionId, timestamp, cwd, workingDirectory, toolCallId, ...rest } = input;
    return rest;
};

// Hooks that are noted; `outputs` maps each name to what it returns, or to a function that makes it.
const noted = (stage, outputs) =>
    Object.fromEntries(
        Object.entries(outputs).map(([name, output]) => [
            name,
            async (input) => {
                stage.note(`hook ${name}`, told(input));
                const value = typeof output === "function" ? await output(input) : output;
                stage.note(`hook out ${name}`, value);
                return value;
            },
        ]),
    );

const term =
    (outputs, tool = {}, session = {}) =>
    async (stage) => {
        const hooks = noted(stage, typeof outputs === "function" ? outputs() : outputs);
        const tools = [stage.tool("term", { result: "ok result", terminal: true, ...tool })];
        await stage.open({ tools, hooks, ...session });
        await stage.turns();
    };

const ordinary = { terminal: false };
const rejectAll = { onPermissionRequest: () => ({ kind: "reject" }) };
const failed = (textResultForLlm, resultType = "failure") => ({ result: { textResultForLlm, resultType } });
const post = (textResultForLlm, resultType = "success") => ({ modifiedResult: { textResultForLlm, resultType } });
const postText = { onPostToolUse: { ...post("post text"), additionalContext: "POST CTX" } };

// Blocks the first `times` stops.
const blocks = (times, reason) => () => {
    let stops = 0;
    return {
        onAgentStop() {
            stops += 1;
            if (stops <= times) return { decision: "block", reason: reason(stops) };
        },
    };
};

export const scenarios = {
    hook_pre_deny: term({ onPreToolUse: { permissionDecision: "deny", permissionDecisionReason: "because" } }),
    hook_pre_deny_noreason: term({ onPreToolUse: { permissionDecision: "deny" } }),
    hook_pre_allow_vs_reject: term({ onPreToolUse: { permissionDecision: "allow" } }, { result: "ok" }, rejectAll),
    hook_pre_ask_skip: term(
        { onPreToolUse: { permissionDecision: "ask", permissionDecisionReason: "ask me" } },
        { skipPermission: true },
    ),
    hook_pre_modify: term({
        onPreToolUse: { modifiedArgs: { v: "changed", extra: 1 }, additionalContext: "PRE CTX" },
    }),
    hook_pre_throw: term({
        onPreToolUse() {
            throw new Error("hook broke");
        },
    }),

    hook_post_text: term(postText),
    hook_post_text_nonterm: term(postText, ordinary),
    hook_post_partial: term({ onPostToolUse: { modifiedResult: { textResultForLlm: "only text" } } }),
    hook_post_fail: term({ onPostToolUse: post("post made it fail", "failure") }),
    hook_post_rejected: term({ onPostToolUse: post("rej by hook", "rejected") }),

    hook_postfail_ctx: term(
        { onPostToolUseFailure: { additionalContext: "FAIL CTX", ...post("now ok") } },
        failed("handler fail"),
    ),
    hook_postfail_throw: term({ onPostToolUseFailure: { additionalContext: "FAIL CTX" } }, { throws: "secret" }),
    hook_postfail_denied: term({ onPostToolUseFailure: { additionalContext: "FAIL CTX" } }, failed("den", "denied")),

    hook_agentstop: term(blocks(2, (n) => `keep going ${n}`)),
    hook_agentstop_nonterm: term(() => {
        let stops = 0;
        return {
            onAgentStop() {
                stops += 1;
                if (stops % 2) return { decision: "block", reason: "keep going" };
            },
        };
    }, ordinary),

    hook_prompt: term({
        onUserPromptSubmitted: ({ prompt }) => ({ modifiedPrompt: `MOD:${prompt}`, additionalContext: "UPS CTX" }),
        onUserPromptTransformed: ({ transformedPrompt }) => ({
            modifiedTransformedPrompt: `TR:${transformedPrompt}`,
        }),
        onSessionStart: { additionalContext: "START CTX" },
        onSessionEnd: {},
    }),

    async hook_clear(stage) {
        const silent = (name) => [name, (input) => void stage.note(`hook ${name}`, told(input))];
        const names = ["onUserPromptSubmitted", "onUserPromptTransformed", "onSessionStart", "onPreToolUse"];
        const all = [...names, "onPostToolUse", "onAgentStop", "onSessionEnd"];
        await stage.open({ tools: [stage.clearTool()], hooks: Object.fromEntries(all.map(silent)) });
        await stage.turns();
    },

    async hook_clear_in_pre(stage) {
        const onPreToolUse = async () => {
            stage.note("clear in pre", await stage.clear("pre seed"));
        };
        await stage.open({
            tools: [stage.tool("term", { result: "ok", terminal: true })],
            hooks: { onPreToolUse },
        });
        await stage.turns();
    },

    async hook_clear_postfail(stage) {
        const hooks = { onPostToolUse: () => post("post made it fail", "failure") };
        await stage.open({ tools: [stage.clearTool()], hooks });
        await stage.turns();
    },
};

// How a tool call can end: results of handlers, permissions, arguments, and mixtures in one batch.
const refusal = (kind, more) => () => ({ kind, ...more });

// One terminal tool named `term`, every prompt of the record as a turn.
const term =
    (tool = {}, session = {}) =>
    async (stage) => {
        await stage.open({ tools: [stage.tool("term", { result: "ok result", terminal: true, ...tool })], ...session });
        await stage.turns();
    };

const permission = (onPermissionRequest) => term({}, { onPermissionRequest });

const result = (textResultForLlm, resultType, error) => ({ textResultForLlm, resultType, ...(error && { error }) });

// Tools by name, each with the options of `stage.tool`; names that begin with "term" are terminal.
const tools =
    (options, session = {}) =>
    async (stage) => {
        const made = Object.entries(options).map(([name, { afterCall, ...more }]) => {
            const after = afterCall && (() => stage.saw("external_tool.completed", afterCall));
            return stage.tool(name, { after, terminal: name.startsWith("term"), ...more });
        });
        await stage.open({ tools: made, ...session });
        await stage.turns();
    };

const t = { result: "t ok" };
const o = { result: "o ok" };
const strict = {
    result: "ok",
    parameters: {
        type: "object",
        properties: { v: { type: "string" } },
        required: ["v"],
        additionalProperties: false,
    },
};

export const scenarios = {
    term_success: term(),
    term_success_obj: term({
        result: {
            textResultForLlm: "obj ok",
            resultType: "success",
            sessionLog: "LOG",
            toolTelemetry: { a: { b: 1 } },
        },
    }),
    term_json: term({ result: { a: 1 } }),
    term_undefined: term({ result: () => undefined }),
    term_weird_type: term({ result: result("weird text", "banana") }),
    term_with_text: term(t),
    term_failure: term({ result: result("fail text", "failure", "the err") }),
    term_failure_noerr: term({ result: result("fail text", "failure") }),
    term_denied: term({ result: result("den text", "denied", "den err") }),
    term_rejected: term({ result: result("rej text", "rejected", "rej err") }),
    term_timeout_type: term({ result: result("to text", "timeout", "to err") }),
    term_throw: term({ throws: "kaboom secret" }),

    unknown_tool: term(),
    invalid_json: term(),
    args_array: term(),
    args_string: term(),
    args_empty_string: term({ result: "ok" }),
    schema_missing: term(strict),
    schema_wrong_type: term(strict),
    schema_extra: term(strict),

    skip_permission: term({ skipPermission: true }, { onPermissionRequest: refusal("reject") }),
    no_perm_handler: tools({ t: {} }, { onPermissionRequest: undefined }),
    no_perm_handler_skip: term({ skipPermission: true }, { onPermissionRequest: undefined }),
    perm_reject: permission(refusal("reject")),
    perm_reject_feedback: permission(refusal("reject", { feedback: "please no" })),
    perm_user_na: permission(refusal("user-not-available")),
    perm_cancelled: permission(refusal("cancelled", { reason: "why" })),
    perm_throw: permission(() => {
        throw new Error("permission handler broke");
    }),
    perm_bogus: permission(refusal("bogus")),
    perm_approve_perm: permission(refusal("approve-permanently", { domain: "x" })),
    perm_approve_session: permission(refusal("approve-for-session")),
    perm_denied_ce: permission(refusal("denied-by-content-exclusion-policy", { path: "/x", message: "ce msg" })),
    perm_denied_hook: permission(refusal("denied-by-permission-request-hook", { message: "hook msg" })),
    perm_denied_hook_int: permission(
        refusal("denied-by-permission-request-hook", { message: "hook msg", interrupt: true }),
    ),
    perm_denied_noapproval: permission(refusal("denied-no-approval-rule-and-could-not-request-from-user")),
    perm_denied_rules: permission(refusal("denied-by-rules", { rules: [] })),
    perm_denied_user: permission(refusal("denied-interactively-by-user", { feedback: "fb" })),
    perm_denied_user_force: permission(
        refusal("denied-interactively-by-user", { feedback: "fb", forceReject: true }),
    ),

    async perm_noresult(stage) {
        const onPermissionRequest = () => ({ kind: "no-result" });
        await stage.open({ tools: [stage.tool("term", { terminal: true })], onPermissionRequest });
        await stage.send("go");
        await stage.saw("permission.requested");
        await stage.session.abort();
        await stage.saw("session.idle");
        await stage.turn("next");
    },

    async approve_for_session(stage) {
        let asked = 0;
        const onPermissionRequest = () => {
            asked += 1;
            return { kind: "approve-for-session", approval: { kind: "custom-tool", toolName: "t" } };
        };
        await stage.open({ tools: [stage.tool("t", { result: "ok" })], onPermissionRequest });
        await stage.turns();
        stage.note("perm calls", asked);
    },

    mix_term_ok_ord_ok: tools({ term: t, ord: o }),
    mix_ord_ok_term_ok: tools({ ord: o, term: t }),
    mix_term_ok_ord_fail: tools({ term: t, ord: { result: result("o fail", "failure") } }),
    mix_term_ok_ord_rejected: tools({ term: t, ord: { result: result("o rej", "rejected") } }),
    mix_term_ok_ord_throw: tools({ term: t, ord: { throws: "x" } }),
    mix_term_ok_ord_slow: tools({ term: t, ord: { ...o, afterCall: 1 } }),
    mix_term_ok_badjson: tools({ term: t, ord: o }),
    mix_term_ok_unknown: tools({ term: t }),
    mix_term_fail_ord_ok: tools({ term: { result: result("t fail", "failure") }, ord: o }),
    mix_two_term_ok: tools({ term: { ...t, afterCall: 1 }, term2: { result: "t2 ok" } }),
    mix_two_term_one_fails: tools({ term: t, term2: { result: result("t2 fail", "failure") } }),
    mix_two_term_first_fails: tools({ term: { result: result("t1 fail", "failure") }, term2: { result: "t2 ok" } }),

    ord_rejected: tools({ ord: { result: result("o rej", "rejected") } }),
    ord_rejected_plus_slow: tools({
        ord: { result: result("o rej", "rejected") },
        ord2: { result: "slow ok", afterCall: 1 },
    }),
    ord_perm_reject: tools({ ord: {} }, { onPermissionRequest: refusal("reject") }),
    ord_perm_reject_one_of_two: tools(
        { ord: {}, ord2: { result: "y" } },
        { onPermissionRequest: ({ toolName }) => ({ kind: toolName === "ord" ? "reject" : "approve-once" }) },
    ),

    async raw_results(stage) {
        const variants = [
            { result: "plain" },
            { result: result("weird", "banana") },
            { result: { textResultForLlm: "notype" } },
            { result: { resultType: "success" } },
            { result: {} },
            { result: 5 },
            { result: null },
            {},
            { error: "E msg" },
            { error: "E", result: "R" },
            { error: "" },
            { result: { ...result("s", "success"), error: "but error" } },
            { result: result("", "failure") },
        ];
        // No handler: the scenario itself answers.
        await stage.open({ tools: [{ name: "term", description: "d", skipPermission: true, isTerminal: true }] });
        const { sessionId } = stage.session;
        const answer = (params) => stage.raw("session.tools.handlePendingToolCall", { sessionId, ...params });
        for (const [n, variant] of variants.entries()) {
            stage.note("VARIANT", variant);
            await stage.send("go");
            await stage.saw("external_tool.requested", n + 1);
            const { requestId } = stage.events.findLast(({ type }) => type === "external_tool.requested").data;
            stage.note("rpc", await answer({ requestId, ...variant }));
            await stage.saw("session.idle", n + 1);
            stage.note("dup", await answer({ requestId, ...variant }));
        }
        stage.note("unknown rid", await answer({ requestId: "nope", result: "x" }));
    },
};

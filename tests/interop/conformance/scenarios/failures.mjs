// What a model provider can do wrong, whole answers and streams.
const withEcho =
    (session = {}) =>
    async (stage) => {
        await stage.open({ tools: [stage.tool("echo", { result: "ok" })], ...session });
        await stage.turns();
    };
const whole = withEcho();
const streamed = withEcho({ streaming: true });
const answering = (answers, play) => ({ answers, play });
const all = (names, play) => Object.fromEntries(names.map((name) => [name, play]));
const retryAfter = { headers: { "retry-after": "1" } };

export const scenarios = {
    ...all(["err_400", "err_401", "err_403", "err_404", "err_413", "err_500_forever", "err_500_once"], whole),
    ...all(["err_after_tool", "err_content_filter", "err_context_len", "err_cut_stream", "err_empty_body"], whole),
    ...all(["err_empty_choices", "err_empty_content", "err_finish_length", "err_html", "err_malformed_sse"], whole),
    ...all(["json_500_text", "json_empty_choices"], whole),
    err_429_retryafter: answering({ 0: retryAfter }, whole),
    err_429_forever: answering(Object.fromEntries([0, 1, 2, 3, 4, 5].map((n) => [n, retryAfter])), whole),
    err_cut_connection: answering({ 0: { cut: "connection" } }, whole),

    ...all(["sse_500", "sse_done_only", "sse_dup_ids", "sse_empty", "sse_empty_choices", "sse_error_mid"], streamed),
    ...all(["sse_malformed", "sse_no_done", "sse_no_finish", "sse_text_and_tool", "sse_tool_finish_stop"], streamed),
    ...all(["sse_cut_tool", "sse_tool_no_id"], streamed),
    sse_cut: answering({ 0: { stopAfter: 1, cut: true } }, streamed),

    async saw_error(stage) {
        await stage.open();
        await stage.try(null, "sendAndWait err", () => stage.session.sendAndWait("go"));
    },
};

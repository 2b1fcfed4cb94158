// What a scenario does with the official client, and the record of what it saw.
import { CopilotClient, RuntimeConnection, approveAll } from "./sdk.mjs";

const schema = { type: "object", properties: { v: { type: "string" } } };

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const told = (error) => ({ message: error.message, code: error.code, name: error.name });

export function startClient(runtime, options = {}) {
    const connection = RuntimeConnection.forStdio({ path: runtime.path, args: runtime.args });
    return new CopilotClient({ connection, env: runtime.env, useLoggedInUser: false, logLevel: "error", ...options });
}

export class Stage {
    constructor({ name, sent, script, base, client, runtime }) {
        Object.assign(this, { name, sent, script, client, runtime });
        this.provider = { type: "openai", baseUrl: `${base}/${encodeURIComponent(name)}/v1`, apiKey: "scripted-key" };
        this.events = [];
        this.notes = [];
        this.watchers = new Set();
        this.mine = [];
    }

    note(key, value = null) {
        this.notes.push({ [key]: value });
    }

    // Note what `action` resolves to, or its error under another key.
    async try(key, errorKey, action) {
        try {
            const result = await action();
            if (key) this.note(key, result);
            return result;
        } catch (error) {
            this.note(errorKey, told(error));
        }
    }

    config({ label, ...changes } = {}) {
        return {
            model: "fake",
            systemMessage: { mode: "replace", content: "SYS" },
            availableTools: ["custom:*"],
            provider: this.provider,
            onPermissionRequest: approveAll,
            onEvent: (event) => this.#seen(event, label),
            ...changes,
        };
    }

    #seen(event, session) {
        this.events.push({ type: event.type, data: event.data, id: event.id, ephemeral: event.ephemeral, session });
        for (const check of [...this.watchers]) check();
    }

    async open(changes) {
        this.session = await this.client.createSession(this.config(changes));
        return this.session;
    }

    async resume(id = this.session.sessionId, changes = {}, client = this.client) {
        this.session = await client.resumeSession(id, this.config(changes));
        return this.session;
    }

    // Resolves when `count` events of this type (and, if given, with a true `where(data)`) have been seen in all.
    saw(type, count = 1, where = () => true, session = undefined) {
        const enough = () =>
            this.events.filter((e) => e.type === type && where(e.data) && (!session || e.session === session)).length >=
            count;
        return new Promise((resolve) => {
            const check = () => enough() && (this.watchers.delete(check), resolve());
            this.watchers.add(check);
            check();
        });
    }

    // Resolves when `count` clears have been acknowledged: the event may come later, when a clear takes effect.
    async cleared(count = 1) {
        while (this.notes.filter((note) => "clear rpc result" in note).length < count) await pause(5);
    }

    idles() {
        return this.events.filter((event) => event.type === "session.idle").length;
    }

    send(message, session = this.session) {
        return session.send(message);
    }

    // Send and wait until the session is idle again.
    async turn(message, session = this.session) {
        const before = this.idles();
        await this.send(message, session);
        await this.saw("session.idle", before + 1);
    }

    // All prompts of the record, each as a turn of its own.
    async turns(prompts = this.sent) {
        for (const prompt of prompts) await this.turn(prompt);
    }

    // A tool whose handler returns `result` (or throws it, or calls it), once `after` has resolved.
    tool(name, { result = `${name} ok`, throws, after, terminal, ...more } = {}) {
        const handler = async (args, invocation) => {
            this.note(`handler start ${name}`, { args, call: invocation.toolCallId });
            await after?.(invocation);
            if (throws) {
                this.note(`handler throw ${name}`, throws);
                throw new Error(throws);
            }
            const value = typeof result === "function" ? await result(args, invocation) : result;
            this.note(`handler end ${name}`, value);
            return value;
        };
        return { name, description: name, parameters: schema, handler, ...(terminal && { isTerminal: true }), ...more };
    }

    clear(prompt, session = this.session) {
        return session.rpc.history.clearContext({ prompt });
    }

    // The documented tool: it clears its session's context. `then(text)` says what the handler does afterwards.
    clearTool({ terminal = true, before, then = (text) => text, session, name = "clear_context", ...more } = {}) {
        const handler = async ({ prompt }, invocation) => {
            await before?.(invocation);
            const result = await this.clear(prompt, session?.() ?? this.session).catch((error) => {
                this.note("clear rpc error", told(error));
                throw error;
            });
            this.note("clear rpc result", result);
            return then(`Cleared ${result.messagesCleared}`, invocation);
        };
        const parameters = { type: "object", properties: { prompt: { type: "string" } }, required: ["prompt"] };
        return { name, description: "clear", parameters, handler, defer: "never", isTerminal: terminal, ...more };
    }

    // A runtime of this scenario's own, which may be killed; its sessions are there for the next one.
    async ownRuntime() {
        const journal = `sqlite:///${process.cwd()}/${this.name}.sqlite3`;
        this.client = startClient({ ...this.runtime, env: { ...this.runtime.env, EXEUNT_JOURNAL: journal } });
        this.mine.push(this.client);
        await this.client.start();
        return this.client;
    }

    // A runtime of this scenario's own that listens on TCP; resolves to its address and token.
    async listening() {
        const connectionToken = "open-sesame";
        const { path, args, env } = this.runtime;
        const connection = RuntimeConnection.forTcp({ path, args, connectionToken });
        this.client = new CopilotClient({ connection, env, useLoggedInUser: false, logLevel: "error" });
        this.mine.push(this.client);
        await this.client.start();
        return { url: `localhost:${this.client.runtimePort}`, connectionToken };
    }

    // Another client of a runtime that listens.
    async connected({ url, connectionToken }) {
        const client = new CopilotClient({ connection: RuntimeConnection.forUri(url, { connectionToken }) });
        this.mine.push(client);
        await client.start();
        return client;
    }

    kill() {
        const { pid } = this.client.cliProcess;
        const gone = new Promise((resolve) => this.client.cliProcess.once("exit", resolve));
        process.kill(pid, "SIGKILL");
        return gone;
    }

    // Any method, as the client sends it.
    raw(method, params) {
        return this.client.connection.sendRequest(method, params);
    }

    async close() {
        await Promise.allSettled(this.mine.map((client) => client.forceStop()));
    }
}

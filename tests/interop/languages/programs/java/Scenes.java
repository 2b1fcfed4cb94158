import static java.util.concurrent.CompletableFuture.completedFuture;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.github.copilot.CopilotSession;
import com.github.copilot.generated.AssistantMessageDeltaEvent;
import com.github.copilot.generated.SessionContextClearedEvent;
import com.github.copilot.generated.SessionIdleEvent;
import com.github.copilot.generated.UserMessageEvent;
import com.github.copilot.generated.rpc.SessionHistoryClearContextParams;
import com.github.copilot.rpc.PermissionHandler;
import com.github.copilot.rpc.PermissionRequestResult;
import com.github.copilot.rpc.PreToolUseHookOutput;
import com.github.copilot.rpc.ResumeSessionConfig;
import com.github.copilot.rpc.SessionHooks;
import com.github.copilot.rpc.ToolDefer;
import com.github.copilot.rpc.ToolDefinition;
import com.github.copilot.rpc.ToolHandler;
import com.github.copilot.rpc.UserInputResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;

/** The scenes. */
final class Scenes {
    private Scenes() {}

    private static Map<String, Object> schema(String name) {
        return Map.of("type", "object", "properties", Map.of(name, Map.of("type", "string")), "required", List.of(name));
    }

    private static ToolDefinition note(ToolHandler handler) {
        return ToolDefinition.create("note", "Take a note.", schema("text"), handler);
    }

    private static ToolDefinition note() {
        return note(invocation -> completedFuture("noted " + invocation.getArguments().get("text")));
    }

    static Map<String, Object> clear(Play play) throws Exception {
        var holder = new AtomicReference<CopilotSession>();
        ToolHandler handler = invocation -> {
            var prompt = (String) invocation.getArguments().get("prompt");
            return holder.get().getRpc().history
                    .clearContext(new SessionHistoryClearContextParams(null, prompt))
                    .thenApply(done -> "Cleared " + done.messagesCleared() + " messages.");
        };
        var description = "Clear the conversation and start a fresh context window.";
        var tool = ToolDefinition.create("clear_context", description, schema("prompt"), handler)
                .isTerminal(true)
                .defer(ToolDefer.NEVER);
        var session = Play.wait(play.client.createSession(play.config().setTools(List.of(tool))));
        holder.set(session);
        var kinds = new CopyOnWriteArrayList<String>();
        session.on(event -> kinds.add(event.getType()));
        var replies = List.of(Play.ask(session, "hello"), Play.ask(session, "please start over"));
        var cleared = new ArrayList<Object>();
        for (var event : Play.wait(session.getMessages())) {
            if (event instanceof SessionContextClearedEvent one) {
                cleared.add(one.getData().initialMessage());
                cleared.add(one.getData().messagesCleared());
            }
        }
        session.close();
        return Map.of("replies", replies, "kinds", List.copyOf(kinds), "cleared", cleared);
    }

    static Map<String, Object> abort(Play play) throws Exception {
        var started = new CompletableFuture<Void>();
        var stuck = new CompletableFuture<Object>();
        var tool = note(invocation -> {
            started.complete(null);
            return stuck;
        });
        var session = Play.wait(play.client.createSession(play.config().setTools(List.of(tool))));
        var idle = new CompletableFuture<Void>();
        var kinds = new CopyOnWriteArrayList<String>();
        session.on(event -> kinds.add(event.getType()));
        session.on(SessionIdleEvent.class, event -> idle.complete(null));
        Play.wait(session.send("use note"));
        Play.wait(started);
        Play.wait(session.abort());
        Play.wait(idle);
        stuck.complete("too late");
        var reply = Play.ask(session, "hello");
        return Map.of("kinds", List.copyOf(kinds), "reply", reply);
    }

    static Map<String, Object> permission(Play play) throws Exception {
        var asked = new CopyOnWriteArrayList<String>();
        var allow = new AtomicBoolean();
        var config = play.config().setTools(List.of(note())).setOnPermissionRequest((request, invocation) -> {
            asked.add(request.getKind());
            return completedFuture(
                    allow.get() ? PermissionRequestResult.approveOnce() : PermissionRequestResult.reject("not today"));
        });
        var session = Play.wait(play.client.createSession(config));
        var denied = Play.ask(session, "use note");
        allow.set(true);
        var allowed = Play.ask(session, "use note");
        return Map.of("asked", List.copyOf(asked), "denied", denied, "allowed", allowed);
    }

    static Map<String, Object> userInput(Play play) throws Exception {
        var asked = new CopyOnWriteArrayList<String>();
        var config = play.config().setOnUserInputRequest((request, invocation) -> {
            asked.add(request.getQuestion());
            return completedFuture(new UserInputResponse().setAnswer(request.getChoices().get(1)).setWasFreeform(false));
        });
        var session = Play.wait(play.client.createSession(config));
        var reply = Play.ask(session, "use ask_user");
        return Map.of("asked", List.copyOf(asked), "reply", reply);
    }

    static Map<String, Object> hooks(Play play) throws Exception {
        var called = new CopyOnWriteArrayList<String>();
        var deny = new AtomicBoolean();
        var modified = new ObjectMapper().createObjectNode().put("text", "of the hook");
        var hooks = new SessionHooks()
                .setOnPreToolUse((input, invocation) -> {
                    called.add("pre " + input.getToolName());
                    return completedFuture(deny.get()
                            ? PreToolUseHookOutput.deny("house rules")
                            : PreToolUseHookOutput.withModifiedArgs("allow", modified));
                })
                .setOnPostToolUse((input, invocation) -> {
                    called.add("post " + input.getToolName());
                    return completedFuture(null);
                })
                .setOnUserPromptSubmitted((input, invocation) -> {
                    called.add("prompt " + input.prompt());
                    return completedFuture(null);
                });
        var config = play.config().setTools(List.of(note())).setHooks(hooks);
        var session = Play.wait(play.client.createSession(config));
        var first = Play.ask(session, "use note");
        deny.set(true);
        var second = Play.ask(session, "use note");
        return Map.of("called", List.copyOf(called), "modified", first, "denied", second);
    }

    static Map<String, Object> streaming(Play play) throws Exception {
        var session = Play.wait(play.client.createSession(play.config().setStreaming(true)));
        var deltas = new CopyOnWriteArrayList<String>();
        session.on(AssistantMessageDeltaEvent.class, event -> deltas.add(event.getData().deltaContent()));
        var reply = Play.ask(session, "hello");
        return Map.of("deltas", List.copyOf(deltas), "reply", reply);
    }

    static Map<String, Object> resume(Play play) throws Exception {
        var first = Play.wait(play.client.createSession(play.config()));
        var id = first.getSessionId();
        Play.ask(first, "hello");
        first.close();
        var client = play.outlives() ? play.connect() : play.client;
        var config = new ResumeSessionConfig()
                .setModel("fake")
                .setProvider(play.provider())
                .setSystemMessage(play.system())
                .setTools(List.of(note()))
                .setOnPermissionRequest(PermissionHandler.APPROVE_ALL);
        var second = Play.wait(client.resumeSession(id, config));
        var reply = Play.ask(second, "use note");
        var said = new ArrayList<String>();
        for (var event : Play.wait(second.getMessages())) {
            if (event instanceof UserMessageEvent one) {
                said.add(one.getData().content());
            }
        }
        second.close();
        if (client != play.client) {
            Play.wait(client.stop());
        }
        return Map.of("same", id.equals(second.getSessionId()), "reply", reply, "said", said);
    }

    static Map<String, Object> list(Play play) throws Exception {
        var session = Play.wait(play.client.createSession(play.config()));
        var id = session.getSessionId();
        Play.ask(session, "hello");
        var before = Play.wait(play.client.listSessions()).stream().anyMatch(one -> one.getSessionId().equals(id));
        session.close();
        Play.wait(play.client.deleteSession(id));
        var after = Play.wait(play.client.listSessions()).stream().anyMatch(one -> one.getSessionId().equals(id));
        var resumed = true;
        try {
            var config = new ResumeSessionConfig().setOnPermissionRequest(PermissionHandler.APPROVE_ALL);
            Play.wait(play.client.resumeSession(id, config));
        } catch (java.util.concurrent.ExecutionException gone) {
            resumed = false;
        }
        return Map.of("before", before, "after", after, "resumed", resumed);
    }

    static Map<String, Object> two(Play play) throws Exception {
        var both = new CompletableFuture<Object>();
        var running = new CopyOnWriteArrayList<String>();
        var asked = new ArrayList<CompletableFuture<String>>();
        for (var name : List.of("left", "right")) {
            var tool = note(invocation -> {
                running.add(name);
                if (running.size() == 2) {
                    both.complete(null);
                }
                return both.thenApply(ready -> name); // so that both are at work
            });
            var session = Play.wait(play.client.createSession(play.config().setTools(List.of(tool))));
            asked.add(session.sendAndWait("use note").thenApply(answer -> answer.getData().content()));
        }
        var replies = new ArrayList<String>();
        for (var one : asked) {
            replies.add(Play.wait(one));
        }
        return Map.of("replies", replies);
    }
}

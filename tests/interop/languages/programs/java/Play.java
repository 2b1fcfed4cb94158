import com.fasterxml.jackson.databind.ObjectMapper;
import com.github.copilot.CopilotClient;
import com.github.copilot.CopilotSession;
import com.github.copilot.SystemMessageMode;
import com.github.copilot.rpc.CopilotClientOptions;
import com.github.copilot.rpc.MessageOptions;
import com.github.copilot.rpc.PermissionHandler;
import com.github.copilot.rpc.ProviderConfig;
import com.github.copilot.rpc.RuntimeConnection;
import com.github.copilot.rpc.SessionConfig;
import com.github.copilot.rpc.SystemMessageConfig;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * What a program of this language meets: plays each scene with the official client, and prints what it saw, a JSON
 * object a line. Arguments: the way to the runtime (uri, stdio or tcp), the runtime (an address or a program), the
 * token of the server ("" where there is none), the model's base URL.
 */
public final class Play {
    /** Seconds that one step of a scene may take on a busy machine. */
    static final int LONGEST = 60;

    private final String way;
    private final String runtime;
    private final String token;
    private final String baseUrl;
    final CopilotClient client;

    private Play(String[] args) {
        way = args[0];
        runtime = args[1];
        token = args[2];
        baseUrl = args[3];
        client = connect();
    }

    public static void main(String[] args) throws Exception {
        var play = new Play(args);
        wait(play.client.start());
        var scenes = new LinkedHashMap<String, Scene>();
        scenes.put("clear", Scenes::clear);
        scenes.put("abort", Scenes::abort);
        scenes.put("permission", Scenes::permission);
        scenes.put("user_input", Scenes::userInput);
        scenes.put("hooks", Scenes::hooks);
        scenes.put("streaming", Scenes::streaming);
        scenes.put("resume", Scenes::resume);
        scenes.put("list", Scenes::list);
        scenes.put("two", Scenes::two);
        var mapper = new ObjectMapper();
        for (var scene : scenes.entrySet()) {
            Map<String, Object> saw;
            try {
                saw = new LinkedHashMap<>(scene.getValue().play(play));
            } catch (Exception error) {
                saw = new LinkedHashMap<>(Map.of("error", error.toString()));
            }
            saw.put("scene", scene.getKey());
            System.out.println(mapper.writeValueAsString(saw));
        }
        wait(play.client.stop());
        System.exit(0); // threads of the client need not end the program
    }

    interface Scene {
        Map<String, Object> play(Play play) throws Exception;
    }

    /** A client of the runtime. */
    CopilotClient connect() {
        RuntimeConnection connection;
        if (way.equals("uri")) {
            connection = RuntimeConnection.forUri(runtime).setConnectionToken(token);
        } else if (way.equals("stdio")) {
            connection = RuntimeConnection.forStdio(runtime);
        } else {
            connection = RuntimeConnection.forTcp().setPath(runtime).setConnectionToken(token);
        }
        return new CopilotClient(new CopilotClientOptions().setConnection(connection));
    }

    /** Whether the server outlives its clients. */
    boolean outlives() {
        return way.equals("uri");
    }

    ProviderConfig provider() {
        return new ProviderConfig().setType("openai").setBaseUrl(baseUrl).setApiKey("key");
    }

    SystemMessageConfig system() {
        return new SystemMessageConfig().setMode(SystemMessageMode.REPLACE).setContent("You are terse.");
    }

    /** What the sessions of all scenes have in common. */
    SessionConfig config() {
        return new SessionConfig()
                .setModel("fake")
                .setProvider(provider())
                .setSystemMessage(system())
                .setOnPermissionRequest(PermissionHandler.APPROVE_ALL);
    }

    /**
     * Sends a message and waits for the answer's text.
     *
     * <p>Then for the answer to another request, which this client reads after it has handed the idle event to all its
     * listeners: one that is added meanwhile, as the next message does, may be handed that event too.
     */
    static String ask(CopilotSession session, String prompt) throws Exception {
        var options = new MessageOptions().setPrompt(prompt);
        var text = wait(session.sendAndWait(options, LONGEST * 1000L)).getData().content();
        wait(session.getMessages());
        return text;
    }

    static <T> T wait(Future<T> future) throws Exception {
        return future.get(LONGEST, TimeUnit.SECONDS);
    }
}

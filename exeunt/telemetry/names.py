"""Names of attributes and of span events: OpenTelemetry's, and ours where it has none.

Written out, because the package that has OpenTelemetry's names of this field calls them private, and changes them.
"""

# --- OpenTelemetry's ------------------------------------------------------------------------------------------

OPERATION = "gen_ai.operation.name"
INVOKE_AGENT = "invoke_agent"
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"

AGENT_NAME = "gen_ai.agent.name"
CONVERSATION_ID = "gen_ai.conversation.id"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_STREAM = "gen_ai.request.stream"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
ERROR_TYPE = "error.type"
HTTP_STATUS = "http.response.status_code"

# Only with content.
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

# --- Ours -----------------------------------------------------------------------------------------------------

TENANT = "exeunt.tenant"
TURN_ID = "exeunt.turn.id"
TURN_REASON = "exeunt.turn.reason"
"""Why the turn ended: a `TurnEndReason`."""
TURN_STEPS = "exeunt.turn.steps"
TURN_DELIVERY = "exeunt.turn.delivery"
"""How its message came: `idle`, `queued` or `seed`."""
TURN_RESUMED = "exeunt.turn.resumed"
"""The turn had begun in an activation of which these traces know nothing."""
TURN_LEFT_OPEN = "exeunt.turn.left_open"
"""The session left memory, or was taken over, before the turn had ended."""
MESSAGE_ID = "exeunt.message.id"
QUEUED_SECONDS = "exeunt.message.queued_seconds"
"""From the acceptance of the turn's message to the beginning of the turn."""
GENERATION = "exeunt.generation"
STEP = "exeunt.step"
TOOL_OUTCOME = "exeunt.tool.outcome"
TOOL_TERMINAL = "exeunt.tool.terminal"
ATTEMPT = "exeunt.attempt"
MESSAGES_OMITTED = "exeunt.input.messages_omitted"
"""Messages of the request that are not in `gen_ai.input.messages`, for want of room: the oldest."""
LINK = "exeunt.link"
"""Of a link: why it is there. `context_cleared`, `interrupted` or `session_resumed`."""
SECONDS = "exeunt.seconds"
"""How long what a span event tells of has taken, or will take."""

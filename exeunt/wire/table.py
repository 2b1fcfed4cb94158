"""Every method that this server has: its name, what it does, what it takes."""

from collections.abc import Mapping

from exeunt.wire.messages import answers as an
from exeunt.wire.messages import history as hi
from exeunt.wire.messages import server as sv
from exeunt.wire.messages import sessions as se
from exeunt.wire.method import Method
from exeunt.wire.methods import answers, history, server, sessions, turns

METHODS: Mapping[str, Method] = {
    # The connection and the server
    "connect": Method(server.connect, sv.Connect, before_login=True),
    "ping": Method(server.ping, sv.Ping),
    "status.get": Method(server.status, sv.Nothing),
    "auth.getStatus": Method(server.auth_status, sv.Nothing),
    "models.list": Method(server.list_models, sv.Nothing),
    "tools.list": Method(server.list_tools, sv.Anything),
    "runtime.shutdown": Method(server.shut_down, sv.Nothing),
    # Sessions
    "session.create": Method(sessions.create, se.SessionConfig, hot=True),
    "session.resume": Method(sessions.resume, se.SessionConfig, hot=True),
    "session.detach": Method(sessions.detach, se.OneSession),
    "session.destroy": Method(sessions.destroy, se.OneSession),
    "session.delete": Method(sessions.delete, se.OneSession),
    "session.list": Method(sessions.list_all, se.ListSessions),
    "session.getLastId": Method(sessions.last_id, sv.Nothing),
    "session.getMetadata": Method(sessions.metadata, se.OneSession),
    "session.getMessages": Method(sessions.messages, se.OneSession),
    "session.getForeground": Method(sessions.get_foreground, sv.Nothing),
    "session.setForeground": Method(sessions.set_foreground, sv.SetForeground),
    # Turns
    "session.send": Method(turns.send, se.Send, hot=True),
    "session.sendAndWait": Method(turns.send_and_wait, se.Send, hot=True),
    "session.abort": Method(turns.abort, se.Abort),
    "session.tools.handlePendingToolCall": Method(answers.tool_call, an.ToolAnswer, hot=True),
    "session.permissions.handlePendingPermissionRequest": Method(
        answers.permission, an.PermissionAnswer, hot=True
    ),
    # The context
    "session.history.clearContext": Method(history.clear_context, hi.ClearContext, hot=True),
    "session.history.truncate": Method(history.truncate, hi.Truncate),
}

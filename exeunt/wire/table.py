"""Every method that this server has: its name, what it does, what it takes."""

from collections.abc import Mapping

from exeunt.wire.messages import answers as an
from exeunt.wire.messages import events as ev
from exeunt.wire.messages import files as fi
from exeunt.wire.messages import history as hi
from exeunt.wire.messages import inference as inf
from exeunt.wire.messages import server as sv
from exeunt.wire.messages import sessions as se
from exeunt.wire.messages import settings as st
from exeunt.wire.messages import ui
from exeunt.wire.method import Method
from exeunt.wire.methods import (
    agents,
    answers,
    approvals,
    commands,
    files,
    history,
    inference,
    library,
    log,
    metadata,
    models,
    queue,
    server,
    sessions,
    settings,
    turn_questions,
    turns,
    workspaces,
)
from exeunt.wire.methods import ui as user

METHODS: Mapping[str, Method] = {
    # The connection and the server
    "connect": Method(server.connect, sv.Connect, before_login=True),
    "ping": Method(server.ping, sv.Ping),
    "status.get": Method(server.status, sv.Nothing),
    "auth.getStatus": Method(server.auth_status, sv.Nothing),
    "models.list": Method(server.list_models, sv.Nothing),
    "tools.list": Method(server.list_tools, sv.Anything),
    "llmInference.setProvider": Method(inference.set_provider, sv.Nothing),
    "llmInference.httpResponseStart": Method(inference.response_start, inf.ResponseStart),
    "llmInference.httpResponseChunk": Method(inference.response_chunk, inf.ResponseChunk, hot=True),
    "sessionFs.setProvider": Method(files.set_provider, fi.SetProvider),
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
    "session.suspend": Method(sessions.suspend, se.OneSession),
    "session.shutdown": Method(sessions.shut_down, se.Shutdown),
    "session.getForeground": Method(sessions.get_foreground, sv.Nothing),
    "session.setForeground": Method(sessions.set_foreground, sv.SetForeground),
    # Turns
    "session.send": Method(turns.send, se.Send, hot=True),
    "session.sendAndWait": Method(turns.send_and_wait, se.Send, hot=True),
    "session.sendMessages": Method(turns.send_many, se.SendMessages),
    "session.abort": Method(turns.abort, se.Abort),
    "session.tools.handlePendingToolCall": Method(
        answers.tool_call, an.ToolAnswer, hot=True, passed_over=answers.tool_call_passed_over
    ),
    "session.permissions.handlePendingPermissionRequest": Method(
        answers.permission, an.PermissionAnswer, hot=True
    ),
    # The context
    "session.history.clearContext": Method(history.clear_context, hi.ClearContext, hot=True),
    "session.history.compact": Method(history.compact, hi.Compact),
    "session.history.summarizeForHandoff": Method(history.summarize_for_handoff, se.OneSession),
    "session.history.cancelBackgroundCompaction": Method(history.cancel_background, se.OneSession),
    "session.history.abortManualCompaction": Method(history.abort_manual, se.OneSession),
    "session.history.truncate": Method(history.truncate, hi.Truncate),
    # Messages that wait
    "session.queue.pendingItems": Method(queue.items, se.OneSession),
    "session.queue.hasPending": Method(queue.has_any, se.OneSession),
    "session.queue.removeAt": Method(queue.remove, ui.QueueItem),
    "session.queue.removeMostRecent": Method(queue.remove_last, se.OneSession),
    "session.queue.clear": Method(queue.clear, se.OneSession),
    # The log
    "session.eventLog.read": Method(log.read, ev.ReadLog),
    "session.eventLog.tail": Method(log.tail, se.OneSession),
    "session.eventLog.registerInterest": Method(log.register_interest, ev.RegisterInterest),
    "session.eventLog.releaseInterest": Method(log.release_interest, ev.ReleaseInterest),
    "session.log": Method(log.write, ev.Log),
    # Model, mode, name
    "session.model.getCurrent": Method(models.current_model, se.OneSession),
    "session.model.list": Method(models.list_models, se.OneSession),
    "session.model.switchTo": Method(models.switch_model, st.SwitchModel),
    "session.model.setReasoningEffort": Method(models.set_reasoning_effort, st.SetReasoningEffort),
    "session.mode.get": Method(settings.get_mode, se.OneSession),
    "session.mode.set": Method(settings.set_mode, st.SetMode),
    "session.name.get": Method(settings.get_name, se.OneSession),
    "session.name.set": Method(settings.set_name, st.SetName),
    "session.name.setAuto": Method(settings.set_name_if_none, st.SetAutoName),
    # Options, tools, agents
    "session.options.update": Method(settings.update_options, st.UpdateOptions),
    "session.provider.getEndpoint": Method(models.get_endpoint, st.GetEndpoint),
    "session.provider.add": Method(models.add_provider, st.AddProvider),
    "session.tools.set": Method(settings.set_tools, st.SetTools),
    "session.tools.getCurrentMetadata": Method(settings.tool_metadata, se.OneSession),
    "session.tools.initializeAndValidate": Method(settings.tools_are_valid, se.OneSession),
    "session.agent.list": Method(agents.list_agents, se.OneSession),
    "session.agent.getCurrent": Method(agents.current_agent, se.OneSession),
    "session.agent.select": Method(agents.select_agent, st.SelectAgent),
    "session.agent.deselect": Method(agents.deselect_agent, se.OneSession),
    "session.agent.reload": Method(agents.list_agents, se.OneSession),
    # Permissions
    "session.permissions.setApproveAll": Method(approvals.set_approve_all, st.SetApproveAll),
    "session.permissions.setMode": Method(approvals.set_permission_mode, st.SetPermissionMode),
    "session.permissions.getMode": Method(approvals.get_permission_mode, se.OneSession),
    "session.permissions.resetSessionApprovals": Method(approvals.reset_approvals, se.OneSession),
    "session.permissions.pendingRequests": Method(approvals.pending_approvals, se.OneSession),
    # Questions and commands
    "session.ui.handlePendingUserInput": Method(answers.user_input, an.UserInputAnswer),
    "session.ui.elicitation": Method(user.elicit, ui.Elicitation),
    "session.ui.handlePendingElicitation": Method(user.elicited, ui.ElicitationAnswer),
    "session.ui.handlePendingSessionLimitsExhausted": Method(
        turn_questions.session_limits, ui.SessionLimitsAnswer
    ),
    "session.ui.handlePendingAutoModeSwitch": Method(
        turn_questions.auto_mode_switch, ui.AutoModeSwitchAnswer
    ),
    "session.ui.registerDirectAutoModeSwitchHandler": Method(turn_questions.register_direct, se.OneSession),
    "session.ui.unregisterDirectAutoModeSwitchHandler": Method(
        turn_questions.unregister_direct, ui.DirectHandler
    ),
    "session.commands.list": Method(user.list_commands, se.OneSession),
    "session.commands.execute": Method(user.execute, ui.ExecuteCommand),
    "session.commands.invoke": Method(user.invoke, ui.InvokeCommand),
    "session.commands.enqueue": Method(commands.enqueue, ui.EnqueueCommand),
    "session.commands.respondToQueuedCommand": Method(commands.queued_done, ui.QueuedCommandAnswer),
    "session.commands.handlePendingCommand": Method(user.command_done, ui.CommandAnswer),
    # What is known of a session
    "session.metadata.snapshot": Method(metadata.snapshot, se.OneSession),
    "session.metadata.isProcessing": Method(metadata.is_processing, se.OneSession),
    "session.metadata.activity": Method(metadata.activity, se.OneSession),
    "session.metadata.contextInfo": Method(metadata.context_info, st.ContextInfo),
    "session.metadata.getContextAttribution": Method(metadata.context_attribution, se.OneSession),
    "session.metadata.getContextHeaviestMessages": Method(metadata.heaviest_messages, st.HeaviestMessages),
    "session.metadata.recomputeContextTokens": Method(metadata.recompute_tokens, se.OneSession),
    "session.metadata.setWorkingDirectory": Method(metadata.set_working_directory, st.SetWorkingDirectory),
    "session.metadata.recordContextChange": Method(metadata.record_context, st.RecordContext),
    "session.instructions.getSources": Method(metadata.instruction_sources, se.OneSession),
    "session.usage.getMetrics": Method(metadata.usage, se.OneSession),
    # Files
    "session.plan.read": Method(files.read_plan, se.OneSession),
    "session.plan.update": Method(files.update_plan, fi.Content),
    "session.plan.delete": Method(files.delete_plan, se.OneSession),
    "session.workspaces.getWorkspace": Method(workspaces.get, se.OneSession),
    "session.workspaces.ensure": Method(workspaces.ensure, fi.UpdateWorkspace),
    "session.workspaces.updateMetadata": Method(workspaces.update, fi.UpdateWorkspace),
    "session.workspaces.listFiles": Method(workspaces.list_files, se.OneSession),
    "session.workspaces.readFile": Method(workspaces.read_file, fi.OneFile),
    "session.workspaces.createFile": Method(workspaces.create_file, fi.NewFile),
    "session.workspaces.statFile": Method(workspaces.stat_file, fi.OneFile),
    "session.workspaces.createDirectory": Method(workspaces.create_directory, fi.NewDirectory),
    "session.workspaces.removePath": Method(workspaces.remove_path, fi.RemovePath),
    "session.workspaces.renamePath": Method(workspaces.rename_path, fi.RenamePath),
    "session.workspaces.saveLargePaste": Method(workspaces.save_large_paste, fi.Content),
    "session.workspaces.listCheckpoints": Method(workspaces.list_checkpoints, se.OneSession),
    "session.workspaces.readCheckpoint": Method(workspaces.read_checkpoint, fi.ReadCheckpoint),
    "session.workspaces.addSummary": Method(workspaces.add_summary, fi.AddSummary),
    "session.workspaces.truncateSummaries": Method(workspaces.truncate_summaries, fi.TruncateSummaries),
    # All sessions
    "sessions.list": Method(sessions.list_all, se.ListSessions),
    "sessions.getMetadata": Method(sessions.metadata, se.OneSession),
    "sessions.fork": Method(library.fork, se.ForkSession),
    "sessions.close": Method(library.close, se.OneSession),
    "sessions.delete": Method(library.delete, se.OneSession),
    "sessions.bulkDelete": Method(library.delete_many, se.ManySessions),
    "sessions.findByPrefix": Method(library.find_by_prefix, se.FindByPrefix),
    "sessions.checkInUse": Method(library.in_use, se.ManySessions),
    "sessions.save": Method(library.save, se.OneSession),
}

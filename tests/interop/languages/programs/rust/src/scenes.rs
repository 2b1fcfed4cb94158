//! The scenes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use github_copilot_sdk::handler::ApproveAllHandler;
use github_copilot_sdk::subscription::EventSubscription;
use github_copilot_sdk::types::{DeferMode, ResumeSessionConfig, SessionId, Tool};
use serde_json::json;
use tokio::sync::Barrier;

use crate::handlers::{ClearContext, Named, Note, Person, Stuck, note, schema};
use crate::{Fault, Saw, Stage, ask};

/// The types of the events that arrive until `wanted` of them were of type `last`.
async fn kinds_until(
    events: &mut EventSubscription,
    last: &str,
    wanted: usize,
) -> Result<Vec<String>, Fault> {
    let (mut kinds, mut seen) = (Vec::new(), 0);
    while seen < wanted {
        let event = events.recv().await?;
        seen += usize::from(event.event_type == last);
        kinds.push(event.event_type);
    }
    Ok(kinds)
}

pub async fn clear(stage: &Stage) -> Saw {
    let handler = ClearContext::default();
    let tool = Tool::new("clear_context")
        .with_description("Clear the conversation and start a fresh context window.")
        .with_parameters(schema("prompt"))
        .with_is_terminal(true)
        .with_defer(DeferMode::Never)
        .with_handler(Arc::new(handler.clone()));
    let session = Arc::new(stage.client.create_session(stage.config().with_tools([tool])).await?);
    handler.0.set(session.clone()).ok();
    let mut events = session.subscribe();
    let mut replies = Vec::new();
    for prompt in ["hello", "please start over"] {
        replies.push(ask(&session, prompt).await?);
    }
    let kinds = kinds_until(&mut events, "session.idle", 2).await?;
    let mut cleared = Vec::new();
    for event in session.get_events().await? {
        if event.event_type == "session.context_cleared" {
            cleared.push(event.data["initialMessage"].clone());
            cleared.push(event.data["messagesCleared"].clone());
        }
    }
    session.disconnect().await?;
    Ok(json!({"replies": replies, "kinds": kinds, "cleared": cleared}))
}

pub async fn abort(stage: &Stage) -> Saw {
    let stuck = Stuck::default();
    let config = stage.config().with_tools([note(stuck.clone())]);
    let session = stage.client.create_session(config).await?;
    let mut events = session.subscribe();
    session.send("use note").await?;
    stuck.0.notified().await;
    session.abort().await?;
    let kinds = kinds_until(&mut events, "session.idle", 1).await?;
    let reply = ask(&session, "hello").await?;
    Ok(json!({"kinds": kinds, "reply": reply}))
}

pub async fn permission(stage: &Stage) -> Saw {
    let person = Arc::new(Person::default());
    let config = stage
        .config()
        .with_tools([note(Note)])
        .with_permission_handler(person.clone());
    let session = stage.client.create_session(config).await?;
    let denied = ask(&session, "use note").await?;
    person.yes.store(true, Ordering::SeqCst);
    let allowed = ask(&session, "use note").await?;
    Ok(json!({"asked": person.all(), "denied": denied, "allowed": allowed}))
}

pub async fn user_input(stage: &Stage) -> Saw {
    let person = Arc::new(Person::default());
    let config = stage.config().with_user_input_handler(person.clone());
    let session = stage.client.create_session(config).await?;
    let reply = ask(&session, "use ask_user").await?;
    Ok(json!({"asked": person.all(), "reply": reply}))
}

pub async fn hooks(stage: &Stage) -> Saw {
    let person = Arc::new(Person::default());
    person.yes.store(true, Ordering::SeqCst);
    let config = stage
        .config()
        .with_tools([note(Note)])
        .with_hooks(person.clone());
    let session = stage.client.create_session(config).await?;
    let modified = ask(&session, "use note").await?;
    person.yes.store(false, Ordering::SeqCst);
    let denied = ask(&session, "use note").await?;
    Ok(json!({"called": person.all(), "modified": modified, "denied": denied}))
}

pub async fn streaming(stage: &Stage) -> Saw {
    let session = stage.client.create_session(stage.config().with_streaming(true)).await?;
    let mut events = session.subscribe();
    let reply = ask(&session, "hello").await?;
    let mut deltas = Vec::new();
    loop {
        let event = events.recv().await?;
        match event.event_type.as_str() {
            "assistant.message_delta" => deltas.push(event.data["deltaContent"].clone()),
            "session.idle" => break,
            _ => {}
        }
    }
    Ok(json!({"deltas": deltas, "reply": reply}))
}

pub async fn resume(stage: &Stage) -> Saw {
    let first = stage.client.create_session(stage.config()).await?;
    let id = first.id().clone();
    ask(&first, "hello").await?;
    first.disconnect().await?;
    let another = stage.another().await?;
    let config = ResumeSessionConfig::new(id.clone())
        .with_model("fake")
        .with_provider(stage.provider())
        .with_system_message(stage.system())
        .with_tools([note(Note)])
        .with_permission_handler(Arc::new(ApproveAllHandler));
    let client = another.as_ref().unwrap_or(&stage.client);
    let second = client.resume_session(config).await?;
    let reply = ask(&second, "use note").await?;
    let mut said = Vec::new();
    for event in second.get_events().await? {
        if event.event_type == "user.message" {
            said.push(event.data["content"].clone());
        }
    }
    let same = second.id() == &id;
    second.disconnect().await?;
    if let Some(client) = another {
        client.stop().await?;
    }
    Ok(json!({"same": same, "reply": reply, "said": said}))
}

async fn listed(stage: &Stage, id: &SessionId) -> Result<bool, Fault> {
    let all = stage.client.list_sessions(None).await?;
    Ok(all.iter().any(|one| &one.session_id == id))
}

pub async fn list(stage: &Stage) -> Saw {
    let session = stage.client.create_session(stage.config()).await?;
    let id = session.id().clone();
    ask(&session, "hello").await?;
    let before = listed(stage, &id).await?;
    session.disconnect().await?;
    stage.client.delete_session(&id).await?;
    let after = listed(stage, &id).await?;
    let config =
        ResumeSessionConfig::new(id).with_permission_handler(Arc::new(ApproveAllHandler));
    let resumed = stage.client.resume_session(config).await.is_ok();
    Ok(json!({"before": before, "after": after, "resumed": resumed}))
}

pub async fn two(stage: &Stage) -> Saw {
    let both = Arc::new(Barrier::new(2));
    let left = stage.config().with_tools([note(Named("left", both.clone()))]);
    let right = stage.config().with_tools([note(Named("right", both))]);
    let left = stage.client.create_session(left).await?;
    let right = stage.client.create_session(right).await?;
    let (left, right) = tokio::join!(ask(&left, "use note"), ask(&right, "use note"));
    Ok(json!({"replies": [left?, right?]}))
}

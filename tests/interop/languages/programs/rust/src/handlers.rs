//! Tools, hooks and handlers of the scenes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use github_copilot_sdk::Error;
use github_copilot_sdk::handler::{
    PermissionHandler, PermissionResult, UserInputHandler, UserInputResponse,
};
use github_copilot_sdk::hooks::{HookEvent, HookOutput, PreToolUseOutput, SessionHooks};
use github_copilot_sdk::rpc::HistoryClearContextRequest;
use github_copilot_sdk::session::Session;
use github_copilot_sdk::tool::ToolHandler;
use github_copilot_sdk::types::{
    PermissionRequestData, RequestId, SessionId, Tool, ToolInvocation, ToolResult,
};
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};

pub fn schema(name: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
}

/// The tool `note`, run by `handler`.
pub fn note(handler: impl ToolHandler + 'static) -> Tool {
    Tool::new("note")
        .with_description("Take a note.")
        .with_parameters(schema("text"))
        .with_handler(Arc::new(handler))
}

/// Says what it got.
pub struct Note;

#[async_trait]
impl ToolHandler for Note {
    async fn call(&self, invocation: ToolInvocation) -> Result<ToolResult, Error> {
        let text = invocation.arguments["text"].as_str().unwrap_or_default();
        Ok(ToolResult::Text(format!("noted {text}")))
    }
}

/// Clears the context of its session.
#[derive(Clone, Default)]
pub struct ClearContext(pub Arc<OnceLock<Arc<Session>>>);

#[async_trait]
impl ToolHandler for ClearContext {
    async fn call(&self, invocation: ToolInvocation) -> Result<ToolResult, Error> {
        let session = self.0.get().expect("the session is known before it is used");
        let prompt = invocation.arguments["prompt"].as_str().unwrap_or_default();
        let done = session
            .rpc()
            .history()
            .clear_context(HistoryClearContextRequest { prompt: prompt.to_string() })
            .await?;
        Ok(ToolResult::Text(format!("Cleared {} messages.", done.messages_cleared)))
    }
}

/// Says that it has started, and never ends by itself.
#[derive(Clone, Default)]
pub struct Stuck(pub Arc<Notify>);

#[async_trait]
impl ToolHandler for Stuck {
    async fn call(&self, _: ToolInvocation) -> Result<ToolResult, Error> {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// Says its name when all others have started too.
pub struct Named(pub &'static str, pub Arc<Barrier>);

#[async_trait]
impl ToolHandler for Named {
    async fn call(&self, _: ToolInvocation) -> Result<ToolResult, Error> {
        self.1.wait().await;
        Ok(ToolResult::Text(self.0.to_string()))
    }
}

/// Keeps what it was asked, and decides or answers.
#[derive(Default)]
pub struct Person {
    pub asked: Mutex<Vec<String>>,
    pub yes: AtomicBool,
}

impl Person {
    pub fn all(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn add(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }
}

#[async_trait]
impl PermissionHandler for Person {
    async fn handle(
        &self,
        _: SessionId,
        _: RequestId,
        data: PermissionRequestData,
    ) -> PermissionResult {
        let kind = serde_json::to_value(data.kind).unwrap_or_default();
        self.add(kind.as_str().unwrap_or_default().to_string());
        if self.yes.load(Ordering::SeqCst) {
            PermissionResult::approve_once()
        } else {
            PermissionResult::reject("not today".to_string())
        }
    }
}

#[async_trait]
impl UserInputHandler for Person {
    async fn handle(
        &self,
        _: SessionId,
        question: String,
        choices: Option<Vec<String>>,
        _: Option<bool>,
    ) -> Option<UserInputResponse> {
        self.add(question);
        Some(UserInputResponse {
            answer: choices?.get(1)?.clone(),
            was_freeform: false,
        })
    }
}

#[async_trait]
impl SessionHooks for Person {
    async fn on_hook(&self, event: HookEvent) -> HookOutput {
        match event {
            HookEvent::PreToolUse { input, .. } => {
                self.add(format!("pre {}", input.tool_name));
                let mut output = PreToolUseOutput::default();
                if self.yes.load(Ordering::SeqCst) {
                    output.permission_decision = Some("allow".to_string());
                    output.modified_args = Some(json!({"text": "of the hook"}));
                } else {
                    output.permission_decision = Some("deny".to_string());
                    output.permission_decision_reason = Some("house rules".to_string());
                }
                HookOutput::PreToolUse(output)
            }
            HookEvent::PostToolUse { input, .. } => {
                self.add(format!("post {}", input.tool_name));
                HookOutput::None
            }
            HookEvent::UserPromptSubmitted { input, .. } => {
                self.add(format!("prompt {}", input.prompt));
                HookOutput::None
            }
            _ => HookOutput::None,
        }
    }
}

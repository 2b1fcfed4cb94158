//! What a program of this language meets: plays each scene with the official client, and prints what it saw, a JSON
//! object a line. Arguments: the way to the runtime (uri, stdio or tcp), the runtime (an address or a program), the
//! token of the server ("" where there is none), the model's base URL.

mod handlers;
mod scenes;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use github_copilot_sdk::handler::ApproveAllHandler;
use github_copilot_sdk::session::Session;
use github_copilot_sdk::types::{ProviderConfig, SessionConfig, SystemMessageConfig};
use github_copilot_sdk::{CliProgram, Client, ClientOptions, Transport};
use serde_json::{Value, json};

/// How long one scene may take on a busy machine.
const LONGEST: Duration = Duration::from_secs(60);

pub type Fault = Box<dyn std::error::Error + Send + Sync>;
pub type Saw = Result<Value, Fault>;

pub struct Stage {
    pub client: Client,
    way: String,
    runtime: String,
    token: String,
    base_url: String,
}

impl Stage {
    /// A client of the runtime.
    pub async fn connect(
        way: &str,
        runtime: &str,
        token: &str,
    ) -> Result<Client, github_copilot_sdk::Error> {
        let connection_token = (!token.is_empty()).then(|| token.to_string());
        // Also where none is started: without it the client looks for the one that it was built with.
        let options = ClientOptions::new().with_program(CliProgram::Path(PathBuf::from(runtime)));
        Client::start(match way {
            "uri" => {
                let (host, port) = runtime.split_once(':').expect("an address has a port");
                options.with_transport(Transport::External {
                    host: host.to_string(),
                    port: port.parse().expect("a port is a number"),
                    connection_token,
                })
            }
            "tcp" => options.with_transport(Transport::Tcp {
                port: 0,
                connection_token,
            }),
            _ => options.with_transport(Transport::Stdio),
        })
        .await
    }

    /// Another client, where the server outlives its clients.
    pub async fn another(&self) -> Result<Option<Client>, Fault> {
        if self.way != "uri" {
            return Ok(None);
        }
        Ok(Some(
            Self::connect(&self.way, &self.runtime, &self.token).await?,
        ))
    }

    pub fn provider(&self) -> ProviderConfig {
        ProviderConfig::new(&self.base_url)
            .with_provider_type("openai")
            .with_api_key("key")
    }

    pub fn system(&self) -> SystemMessageConfig {
        SystemMessageConfig::new()
            .with_mode("replace")
            .with_content("You are terse.")
    }

    /// What the sessions of all scenes have in common.
    pub fn config(&self) -> SessionConfig {
        SessionConfig::default()
            .with_model("fake")
            .with_provider(self.provider())
            .with_system_message(self.system())
            .with_permission_handler(Arc::new(ApproveAllHandler))
    }
}

/// Sends a message and waits for the answer's text.
pub async fn ask(session: &Session, prompt: &str) -> Result<String, Fault> {
    let answer = session.send_and_wait(prompt).await?;
    let event = answer.ok_or("there was no answer")?;
    Ok(event.data["content"].as_str().unwrap_or_default().to_string())
}

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, runtime, token, base_url] = arguments.try_into().expect("four arguments");
    let stage = Stage {
        client: Stage::connect(&way, &runtime, &token).await?,
        way,
        runtime,
        token,
        base_url,
    };
    macro_rules! play {
        ($($name:literal => $scene:path),* $(,)?) => {$(
            let mut saw = match tokio::time::timeout(LONGEST, $scene(&stage)).await {
                Ok(Ok(saw)) => saw,
                Ok(Err(error)) => json!({ "error": error.to_string() }),
                Err(_) => json!({ "error": "the scene did not end" }),
            };
            saw["scene"] = json!($name);
            println!("{saw}");
        )*};
    }
    play!(
        "clear" => scenes::clear,
        "abort" => scenes::abort,
        "permission" => scenes::permission,
        "user_input" => scenes::user_input,
        "hooks" => scenes::hooks,
        "streaming" => scenes::streaming,
        "resume" => scenes::resume,
        "list" => scenes::list,
        "two" => scenes::two,
    );
    stage.client.stop().await?;
    Ok(())
}

//! The scripted model as a program of its own, for tests in other languages: one JSON object a line in, one out.
//!
//! | in | out |
//! | --- | --- |
//! | – | `{"url": "http://127.0.0.1:…"}`, at once |
//! | `{"then": [answer, …]}` | `{}` |
//! | `{"asked_since": 3}` | `{"asked": [{"api", "body"}, …], "faults": ["…"]}`: the requests from the fourth on |
//!
//! An answer is `{"says": "text"}`, `{"parts": [part, …]}` in the canonical form, or `{"status": 429, "body": {…}}`. The first
//! argument is how many bytes of a reply come at a time; without it, all of them.
//!
//! It ends with its standard input, and then fails if it was sent a history that a provider would refuse.

use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use bandstand_testkit::model::{Answer, ModelServer, says};
use bandstand_transcript::{Format, Reply, StopReason, Transcript};
use serde_json::{Value, json};

type AnyError = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), AnyError> {
    let piece = std::env::args().nth(1).map_or(Ok(usize::MAX), |bytes| bytes.parse())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let server = runtime.block_on(ModelServer::start([])).in_pieces(piece, Duration::ZERO);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", json!({ "url": server.url(Format::Anthropic) }))?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        let told = command(&server, &serde_json::from_str(&line?)?)?;
        writeln!(out, "{told}")?;
        out.flush()?;
    }
    Ok(())
}

fn command(server: &ModelServer, given: &Value) -> Result<Value, AnyError> {
    if let Some(answers) = given["then"].as_array() {
        let answers: Result<Vec<Answer>, AnyError> = answers.iter().map(answer).collect();
        server.then(answers?);
        return Ok(json!({}));
    }
    let since = usize::try_from(given["asked_since"].as_u64().ok_or("neither `then` nor `asked_since`")?)?;
    let asked: Vec<Value> =
        server.asked().iter().skip(since).map(|asked| json!({ "api": asked.api.name(), "body": asked.body })).collect();
    Ok(json!({ "asked": asked, "faults": server.faults() }))
}

fn answer(given: &Value) -> Result<Answer, AnyError> {
    if let Some(status) = given["status"].as_u64() {
        return Ok(Answer::Status(u16::try_from(status)?, Vec::new(), given["body"].clone()));
    }
    if let Some(text) = given["says"].as_str() {
        return Ok(Answer::Reply(says(text)));
    }
    let message = json!({ "role": "assistant", "parts": given.get("parts").ok_or("no answer")? });
    let read = Transcript::from_canonical(&json!({ "messages": [message] }))?;
    let message = read.messages.into_iter().next().ok_or("no message")?;
    let called = message.calls().next().is_some();
    let stop_reason = if called { StopReason::ToolUse } else { StopReason::End };
    Ok(Answer::Reply(Reply { message, stop_reason, ..says("") }))
}

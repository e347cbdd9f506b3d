//! The request's body.

use bandstand_transcript::lint::{LintOptions, Severity, lint};
use bandstand_transcript::tools::{Offer, OfferOptions, WireNames, encode_offer, thinks};
use bandstand_transcript::{Format, ProviderHistory};
use serde_json::{Map, Value, json};

use super::{Ask, ModelError, ModelOptions};
use crate::registry::view;

/// Anthropic wants a limit.
const USUAL_MAX_TOKENS: u64 = 4096;

/// A body, and the way back from its names.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) body: Value,
    pub(super) names: WireNames,
}

pub(super) fn prepare(ask: Ask<'_>, options: &ModelOptions) -> Result<Prepared, ModelError> {
    let prepared = write(ask, options)?;
    if cfg!(debug_assertions) {
        check(&prepared.body, options)?;
    }
    Ok(prepared)
}

/// The body, unchecked.
pub(super) fn write(ask: Ask<'_>, options: &ModelOptions) -> Result<Prepared, ModelError> {
    let offer = Offer { tools: ask.tools.iter().map(view::definition).collect(), ..Offer::default() };
    let thinking = thinks(&Value::Object(options.extra.clone()));
    let mut offered = encode_offer(&offer, options.api, &OfferOptions { profile: options.profile, thinking });
    if !offered.warnings.is_empty() {
        let codes: Vec<&str> = offered.warnings.iter().map(|warning| warning.code.code()).collect();
        tracing::debug!(codes = codes.join(", "), "tools go out changed");
    }
    let names = &offered.names.tools;
    let history = ProviderHistory::prepare_with(ask.transcript, options.api, &options.encode(), names);
    if !history.repaired.is_empty() {
        let codes: Vec<&str> = history.repaired.iter().map(|finding| finding.code.code()).collect();
        tracing::debug!(codes = codes.join(", "), "the copy of the history that is sent was repaired");
    }
    offered.names.tools = history.names().clone();
    let Value::Object(mut body) = history.payload().clone() else {
        return Err(ModelError::Options("the history has no form".to_owned()));
    };
    body.extend(offered.fields);
    let mut fields = own_fields(options);
    fields.append(&mut body);
    for (name, value) in &options.extra {
        fields.insert(name.clone(), value.clone());
    }
    Ok(Prepared { body: Value::Object(fields), names: offered.names })
}

/// What stands beside the history.
fn own_fields(options: &ModelOptions) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    match options.profile.body_version.filter(|_| options.api == Format::Anthropic) {
        // There the model stands in the address.
        Some(version) => set("anthropic_version", version.into()),
        None => set("model", options.model.as_str().into()),
    };
    let limit = options.max_output_tokens;
    match options.api {
        Format::OpenAiChat => {
            if let Some(limit) = limit {
                // OpenAI's own models refuse the old name, and many other servers do not know the new one.
                let new = matches!(options.profile.name, "openai" | "azure");
                set(if new { "max_completion_tokens" } else { "max_tokens" }, limit.into());
            }
            if options.stream {
                set("stream_options", json!({ "include_usage": true }));
            }
        }
        Format::OpenAiResponses => {
            if let Some(limit) = limit {
                set("max_output_tokens", limit.into());
            }
            // The whole history is sent each time: nothing has to be kept there.
            set("store", false.into());
            if options.reasoning {
                set("include", json!(["reasoning.encrypted_content"]));
            }
        }
        Format::Anthropic => {
            set("max_tokens", limit.unwrap_or(USUAL_MAX_TOKENS).into());
        }
    }
    if options.stream {
        set("stream", true.into());
    }
    fields
}

/// A request that would be refused is our own fault: it is found here, in tests and development.
fn check(body: &Value, options: &ModelOptions) -> Result<(), ModelError> {
    let how = LintOptions { format: options.api, profile: options.profile, reasoning_model: options.reasoning };
    let codes: Vec<String> = lint(body, &how)
        .into_iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| format!("{} at {}", finding.code, finding.index))
        .collect();
    if codes.is_empty() { Ok(()) } else { Err(ModelError::Lint { codes }) }
}

#[cfg(test)]
mod tests {
    use bandstand_transcript::{Message, Profile, Role, Transcript};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::registry::Tool;

    fn body(options: &ModelOptions) -> Value {
        let transcript =
            Transcript::new(vec![Message::text(Role::System, "Be brief."), Message::text(Role::User, "Hi")]);
        let tool =
            Tool::<()>::dynamic("tide.look up", "Tells.", json!({"type": "object"}), |(), _| async { Ok(json!(1)) });
        let tools = [tool.expect("a tool").spec().clone()];
        let ask = Ask { transcript: &transcript, tools: &tools, cancel: &CancellationToken::new() };
        let prepared = prepare(ask, options).expect("a body");
        assert_eq!(prepared.names.tool("tide_look_up").as_str(), "tide.look up");
        prepared.body
    }

    #[test]
    fn each_api_has_its_fields() {
        let mut chat = ModelOptions::new(Format::OpenAiChat, "m");
        chat.max_output_tokens = Some(9);
        chat.extra.insert("temperature".to_owned(), json!(0));
        let sent = body(&chat);
        assert_eq!(
            (&sent["model"], &sent["max_completion_tokens"], &sent["temperature"]),
            (&json!("m"), &json!(9), &json!(0))
        );
        assert_eq!((&sent["stream"], &sent["stream_options"]["include_usage"]), (&json!(true), &json!(true)));
        assert_eq!(sent["tools"][0]["function"]["name"], "tide_look_up");
        chat.profile = Profile::named("ollama").expect("a profile");
        chat.stream = false;
        let sent = body(&chat);
        assert_eq!((&sent["max_tokens"], sent.get("stream")), (&json!(9), None));

        let mut responses = ModelOptions::new(Format::OpenAiResponses, "m");
        responses.reasoning = true;
        let sent = body(&responses);
        assert_eq!((&sent["store"], &sent["include"][0]), (&json!(false), &json!("reasoning.encrypted_content")));

        let mut anthropic = ModelOptions::new(Format::Anthropic, "m");
        let sent = body(&anthropic);
        assert_eq!((&sent["max_tokens"], &sent["system"]), (&json!(4096), &json!("Be brief.")));
        anthropic.profile = Profile::named("vertex").expect("a profile");
        let sent = body(&anthropic);
        assert_eq!((sent.get("model"), &sent["anthropic_version"]), (None, &json!("vertex-2023-10-16")));
    }

    #[test]
    fn a_call_is_named_as_its_tool_is_however_the_history_begins() {
        let tool = |name: &'static str| {
            let tool = Tool::<()>::dynamic(name, "", json!({"type": "object"}), |(), _| async { Ok(json!(1)) });
            tool.expect("a tool").spec().clone()
        };
        let tools = [tool("a.b"), tool("a_b")];
        let call = |id: &str, name: &str| {
            let read = json!({ "messages": [
                { "role": "assistant", "parts": [{ "type": "tool_call", "id": id, "name": name, "arguments": {} }] },
                { "role": "tool", "parts": [{ "type": "tool_result", "call_id": id, "content": [], "is_error": false }] },
            ] });
            Transcript::from_canonical(&read).expect("a transcript").messages
        };
        let options = ModelOptions::new(Format::OpenAiChat, "m");
        for first in ["a.b", "a_b"] {
            let mut transcript = Transcript::new(vec![Message::text(Role::User, "Hi")]);
            transcript.messages.extend(call("c1", first));
            transcript.messages.extend(call("c2", "a.b"));
            let ask = Ask { transcript: &transcript, tools: &tools, cancel: &CancellationToken::new() };
            let sent = prepare(ask, &options).expect("a body").body;
            let names = ["/tools/0", "/tools/1", "/messages/3/tool_calls/0"]
                .map(|place| sent.pointer(&format!("{place}/function/name")).cloned().unwrap_or_default());
            assert_eq!(names, ["a_b_2", "a_b", "a_b_2"], "{first}");
        }
    }
}

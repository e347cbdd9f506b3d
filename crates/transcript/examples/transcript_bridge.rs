//! Lets another language ask for conversions: one JSON question per line in, one answer per line out.
//! The suite `transcript` of `compat/` has the providers' own packages judge the answers.

use std::io::{BufRead, Write};

use bandstand_transcript::stream::{StreamReader, encode_stream};
use bandstand_transcript::tools::{OfferOptions, decode_offer, encode_offer};
use bandstand_transcript::{
    EncodeOptions, Format, Message, ProviderHistory, Reply, Role, StopReason, Transcript, Usage, Warnings,
    decode_history, decode_reply, encode_reply,
};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let answer =
            serde_json::from_str(&line?).map_err(|error| error.to_string()).and_then(|question| answer(&question));
        writeln!(out, "{}", answer.unwrap_or_else(|error| json!({ "error": error })))?;
        out.flush()?;
    }
    Ok(())
}

fn answer(question: &Value) -> Result<Value, String> {
    let format = |key: &str| {
        let name = question[key].as_str().unwrap_or_default();
        Format::from_name(name).ok_or_else(|| format!("format {name:?} is unknown"))
    };
    match question["op"].as_str().unwrap_or_default() {
        "prepare" => {
            let payload = &question["payload"];
            let transcript = if question["source"] == "canonical" {
                Transcript::from_canonical(payload).map_err(|error| error.to_string())?
            } else {
                decode_history(payload, format("source")?).map_err(|error| error.to_string())?.transcript
            };
            let sent = ProviderHistory::prepare(&transcript, format("target")?, &EncodeOptions::default());
            Ok(json!({ "payload": sent.payload() }))
        }
        "offer" => {
            let offer = decode_offer(&question["payload"], format("source")?).offer;
            Ok(json!({ "payload": encode_offer(&offer, format("target")?, &OfferOptions::default()).fields }))
        }
        "reply" => {
            let (payload, _) =
                encode_reply(&reply(&question["message"])?, format("target")?, "id_1", "m", 1_700_000_000);
            Ok(json!({ "payload": payload }))
        }
        "stream" => {
            let events = encode_stream(&reply(&question["message"])?, format("target")?, "id_1", "m", 1_700_000_000);
            Ok(json!({ "wire": events.iter().map(|event| event.to_wire()).collect::<String>() }))
        }
        "read" => Ok(told(&decode_reply(&question["payload"], format("source")?).map_err(|error| error.to_string())?)),
        "assemble" => {
            let mut reader = StreamReader::new(format("source")?);
            reader.push(question["wire"].as_str().unwrap_or_default().as_bytes());
            let assembled = reader.finish();
            let mut told = told(&assembled.reply);
            told["complete"] = json!(assembled.complete);
            Ok(told)
        }
        other => Err(format!("op {other:?} is unknown")),
    }
}

fn told(reply: &Reply) -> Value {
    json!({ "message": reply.message.to_canonical(), "stop_reason": reply.stop_reason.name() })
}

fn reply(message: &Value) -> Result<Reply, String> {
    let read = Transcript::from_canonical(&json!({ "messages": [message] })).map_err(|error| error.to_string())?;
    let message = read.messages.into_iter().next().unwrap_or_else(|| Message::new(Role::Assistant, Vec::new()));
    let called = message.calls().next().is_some();
    Ok(Reply {
        stop_reason: if called { StopReason::ToolUse } else { StopReason::End },
        usage: Some(Usage { input: 3, output: 5, ..Usage::default() }),
        warnings: Warnings::default(),
        message,
    })
}

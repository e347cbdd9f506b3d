//! What a server answers, as a model is told it.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

/// The value of a tool: the text alone, where that is all; else `{"content": […]}` with texts and images, and with
/// `"ok": false` when the server says that the call failed.
///
/// What no model can be shown (sounds, binary files) is named in words. Structured content is shown where the text does
/// not say the same already. Of the text, the first `most` characters are told.
pub(super) fn value(result: CallToolResult, most: usize) -> Value {
    let failed = result.is_error == Some(true);
    let mut blocks: Vec<Value> = result.content.iter().map(block).collect();
    if let Some(structured) = result.structured_content.filter(|value| !value.is_null()) {
        let texts: Vec<&str> = result.content.iter().filter_map(|block| Some(block.as_text()?.text.as_str())).collect();
        if !says(&texts, &structured) {
            blocks.push(text(structured.to_string()));
        }
    }
    cut(&mut blocks, most);
    if failed {
        if blocks.is_empty() {
            blocks.push(text("The tool failed without a message."));
        }
        return json!({ "ok": false, "content": blocks });
    }
    match blocks.as_slice() {
        [] => Value::String(String::new()),
        [only] if only["type"] == "text" => only["text"].clone(),
        _ => json!({ "content": blocks }),
    }
}

/// Leaves the first `most` characters of all text, and says so.
fn cut(blocks: &mut [Value], most: usize) {
    let mut left = most;
    for block in blocks {
        let Some(Value::String(text)) = block.get_mut("text") else { continue };
        // Bytes are at least as many as characters, and counted for nothing.
        if text.len() <= left {
            left -= text.len();
            continue;
        }
        let all = text.chars().count();
        match text.char_indices().nth(left) {
            Some((end, _)) => {
                text.truncate(end);
                text.push_str(&format!("… [shortened: {left} of {all} characters]"));
                left = 0;
            }
            None => left -= all,
        }
    }
}

fn text(text: impl Into<String>) -> Value {
    json!({ "type": "text", "text": text.into() })
}

fn image(media_type: &str, data: &str) -> Value {
    json!({ "type": "image", "mimeType": media_type, "data": data })
}

fn block(content: &ContentBlock) -> Value {
    match content {
        ContentBlock::Text(part) => text(part.text.as_str()),
        ContentBlock::Image(part) if is_shown(&part.mime_type) => image(&part.mime_type, &part.data),
        ContentBlock::Image(part) => text(format!("[an image, {}, {} bytes]", part.mime_type, bytes(&part.data))),
        ContentBlock::Audio(part) => text(format!("[a sound, {}, {} bytes]", part.mime_type, bytes(&part.data))),
        ContentBlock::Resource(part) => match &part.resource {
            ResourceContents::TextResourceContents { uri, text: content, .. } => {
                text(format!("[the resource {uri}]\n{content}"))
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => match mime_type.as_deref() {
                Some(kind) if is_shown(kind) => image(kind, blob),
                kind => {
                    let kind = kind.map(|kind| format!(", {kind}")).unwrap_or_default();
                    text(format!("[the resource {uri}{kind}, {} bytes]", bytes(blob)))
                }
            },
            _ => text("[a resource of an unknown kind]"),
        },
        ContentBlock::ResourceLink(link) => {
            let mut words = format!("[a link to the resource {} ({})", link.uri, link.name);
            for more in [&link.mime_type, &link.description].into_iter().flatten() {
                words.push_str(", ");
                words.push_str(more);
            }
            words.push(']');
            text(words)
        }
        _ => text("[content of an unknown kind]"),
    }
}

/// Images that all providers take.
fn is_shown(media_type: &str) -> bool {
    matches!(media_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

/// How many bytes a base64 text stands for.
fn bytes(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// Whether texts say what structured content says. Servers wrap what is no object as `{"result": …}`.
fn says(texts: &[&str], structured: &Value) -> bool {
    let wrapped = structured.as_object().filter(|map| map.len() == 1).and_then(|map| map.get("result"));
    let is = |said: &str, value: &Value| {
        value.as_str() == Some(said) || serde_json::from_str::<Value>(said).is_ok_and(|said| said == *value)
    };
    [Some(structured), wrapped].into_iter().flatten().any(|value| {
        texts.iter().any(|said| is(said, value))
            || value.as_str() == Some(texts.concat().as_str())
            || value.as_array().is_some_and(|items| {
                items.len() == texts.len() && items.iter().zip(texts).all(|(item, said)| is(said, item))
            })
    })
}

/// The first 500 characters of what a server says of a failure.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(500) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(result: Value) -> Value {
        value(serde_json::from_value(result).unwrap(), 1_000)
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let result = json!({"content": [text(&"ü".repeat(600)), text(&"x".repeat(500)), text("more")]});
        let cut = told(result);
        let texts: Vec<&str> =
            cut["content"].as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap()).collect();
        assert_eq!(texts[0].chars().count(), 600);
        assert!(texts[1].ends_with("x… [shortened: 400 of 500 characters]"), "{}", texts[1]);
        assert_eq!(texts[2], "… [shortened: 0 of 4 characters]");
    }

    #[test]
    fn each_kind_of_content_is_told() {
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(told(json!({"content": [text("5 m")]})), "5 m");
        assert_eq!(told(json!({"content": []})), "");
        let picture = json!({"type": "image", "mimeType": "image/png", "data": "AAAA"});
        assert_eq!(told(json!({"content": [picture]})), json!({"content": [picture]}));
        let resource = |more: Value| {
            let mut resource = json!({"uri": "tide://k"});
            resource.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"type": "resource", "resource": resource})
        };
        for (block, expected) in [
            (
                json!({"type": "image", "mimeType": "image/svg+xml", "data": "AAAA"}),
                "[an image, image/svg+xml, 3 bytes]",
            ),
            (json!({"type": "audio", "mimeType": "audio/wav", "data": "AAAAAA=="}), "[a sound, audio/wav, 4 bytes]"),
            (resource(json!({"text": "high"})), "[the resource tide://k]\nhigh"),
            (resource(json!({"blob": "AAAA"})), "[the resource tide://k, 3 bytes]"),
            (
                json!({"type": "resource_link", "uri": "tide://k", "name": "k", "description": "Kestrel"}),
                "[a link to the resource tide://k (k), Kestrel]",
            ),
        ] {
            assert_eq!(told(json!({"content": [block]})), expected);
        }
        let shown = told(json!({"content": [resource(json!({"blob": "AAAA", "mimeType": "image/png"}))]}));
        assert_eq!(shown, json!({"content": [picture]}));
    }

    #[test]
    fn structured_content_is_told_once() {
        let text = |text: &str| json!({"type": "text", "text": text});
        for (content, structured) in [
            (json!([text("{\"a\": 1}")]), json!({"a": 1})),
            (json!([text("5 m")]), json!({"result": "5 m"})),
            (json!([text("5")]), json!({"result": 5})),
            (json!([text("a"), text("2")]), json!({"result": ["a", 2]})),
        ] {
            let with = told(json!({"content": content, "structuredContent": structured}));
            assert_eq!(with, told(json!({"content": content})), "{structured}");
        }
        let both = told(json!({"content": [text("Found one.")], "structuredContent": {"a": 1}}));
        assert_eq!(both, json!({"content": [text("Found one."), text("{\"a\":1}")]}));
        assert_eq!(told(json!({"structuredContent": {"a": 1}})), "{\"a\":1}");
    }

    #[test]
    fn the_servers_flag_makes_a_failure() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let failed = told(json!({"content": [text("no gauge")], "isError": true}));
        assert_eq!(failed, json!({"ok": false, "content": [text("no gauge")]}));
        let silent = told(json!({"content": [], "isError": true}));
        assert_eq!(silent["content"][0]["text"], "The tool failed without a message.");
    }
}

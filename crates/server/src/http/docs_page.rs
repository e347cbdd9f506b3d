//! `/api/docs`: the API document as a page to read. It is made here, needs no script and loads nothing.

use std::fmt::Write;
use std::sync::LazyLock;

use axum::body::{Body, Bytes};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::http::{ApiError, api_document};

const STYLE: &str = include_str!("docs_page.css");

static PAGE: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(page(&api_document::document())));

/// Nothing but the page's own style, known by its hash.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

/// `GET /api/docs`.
pub(crate) async fn serve() -> Result<Response, ApiError> {
    let mut response = Response::new(Body::from(PAGE.clone()));
    let policy = HeaderValue::from_str(&POLICY).map_err(ApiError::internal)?;
    let headers: [(HeaderName, HeaderValue); 4] = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    response.headers_mut().extend(headers);
    Ok(response)
}

/// Text within HTML; what stands between backticks is code.
fn text(raw: &str) -> String {
    let escaped = raw.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let mut parts = escaped.split('`');
    let mut html = parts.next().unwrap_or_default().to_owned();
    let mut is_code = true;
    for part in parts {
        html.push_str(if is_code { "<code>" } else { "</code>" });
        html.push_str(part);
        is_code = !is_code;
    }
    if !is_code {
        html.push_str("</code>");
    }
    html
}

fn field<'v>(of: &'v Value, name: &str) -> &'v str {
    of[name].as_str().unwrap_or_default()
}

fn entries(of: &Value) -> impl Iterator<Item = (&String, &Value)> {
    of.as_object().into_iter().flat_map(Map::iter)
}

fn items(of: &Value) -> impl Iterator<Item = &Value> {
    of.as_array().into_iter().flatten()
}

/// Writing to a string cannot fail.
macro_rules! put {
    ($html:expr, $($arg:tt)*) => { let _ = write!($html, $($arg)*); };
}

fn page(document: &Value) -> String {
    let mut html = String::new();
    let title = text(field(&document["info"], "title"));
    put!(html, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} API</title>");
    put!(html, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>{STYLE}</style></head>");
    put!(html, "<body><header><h1>{title} API <small>{}</small></h1>", text(field(&document["info"], "version")));
    put!(html, "<p>{}</p>", text(field(&document["info"], "description")));
    put!(html, "<p><a href=\"/api/openapi.json\">The same for programs</a> (OpenAPI 3.1)</p></header>");
    put!(html, "<nav><ul>");
    for tag in items(&document["tags"]) {
        let name = text(field(tag, "name"));
        put!(html, "<li><a href=\"#{name}\">{name}</a></li>");
    }
    put!(html, "<li><a href=\"#schemas\">schemas</a></li></ul></nav><main>");
    for tag in items(&document["tags"]) {
        let name = field(tag, "name");
        put!(html, "<section><h2 id=\"{0}\">{0}</h2>", text(name));
        for (path, methods) in entries(&document["paths"]) {
            for (method, operation) in entries(methods).filter(|(_, operation)| operation["tags"][0] == name) {
                write_operation(&mut html, document, method, path, operation);
            }
        }
        put!(html, "</section>");
    }
    put!(html, "<section><h2 id=\"schemas\">schemas</h2>");
    for (name, schema) in entries(&document["components"]["schemas"]) {
        put!(html, "<details id=\"schema-{0}\"><summary>{0}</summary>", text(name));
        write_schema(&mut html, schema);
        put!(html, "</details>");
    }
    put!(html, "</section></main></body></html>");
    html
}

fn write_operation(html: &mut String, document: &Value, method: &str, path: &str, operation: &Value) {
    let id = text(field(operation, "operationId"));
    let method = method.to_uppercase();
    put!(html, "<details id=\"{id}\"><summary><b>{method}</b> <code>{}</code> ", text(path));
    put!(html, "<span>{}</span></summary>", text(field(operation, "summary")));
    put!(html, "<p>{} <small>{id}", text(field(operation, "description")));
    for key in items(&operation["security"]).flat_map(entries).map(|(key, _)| key) {
        put!(html, ", {}", text(key));
    }
    put!(html, "</small></p>");
    if operation["parameters"].is_array() {
        put!(html, "<h3>Parameters</h3><table>");
        for one in items(&operation["parameters"]) {
            let mark = if one["required"] == true { " *" } else { "" };
            let old = if one["deprecated"] == true { "Deprecated. " } else { "" };
            put!(html, "<tr><th>{}{mark}</th><td>{}</td>", text(field(one, "name")), text(field(one, "in")));
            put!(html, "<td>{}</td><td>{old}{}</td></tr>", kind(&one["schema"]), text(field(one, "description")));
        }
        put!(html, "</table>");
    }
    for (media_type, content) in entries(&operation["requestBody"]["content"]) {
        let left_out = if operation["requestBody"]["required"] == true { "" } else { ", may be left out" };
        put!(html, "<h3>Body <small>{}{left_out}</small></h3>", text(media_type));
        write_schema(html, &content["schema"]);
    }
    put!(html, "<h3>Replies</h3><table>");
    for (status, response) in entries(&operation["responses"]) {
        let at = response["$ref"].as_str().and_then(|at| document.pointer(at.trim_start_matches('#')));
        let response = at.unwrap_or(response);
        put!(html, "<tr><th>{}</th><td>{}</td><td>", text(status), text(field(response, "description")));
        for (_, content) in entries(&response["content"]) {
            html.push_str(&kind(&content["schema"]));
        }
        put!(html, "</td></tr>");
    }
    put!(html, "</table></details>");
}

fn write_schema(html: &mut String, schema: &Value) {
    if !field(schema, "description").is_empty() {
        put!(html, "<p>{}</p>", text(field(schema, "description")));
    }
    if !schema["properties"].is_object() {
        put!(html, "<p>{}</p>", kind(schema));
        return;
    }
    put!(html, "<table>");
    for (name, property) in entries(&schema["properties"]) {
        let mark = if items(&schema["required"]).any(|required| required == name) { " *" } else { "" };
        put!(html, "<tr><th>{}{mark}</th><td>{}</td>", text(name), kind(property));
        put!(html, "<td>{}</td></tr>", text(field(property, "description")));
    }
    put!(html, "</table>");
}

/// What a value may be, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|at| at.rsplit('/').next()) {
        return format!("<a href=\"#schema-{0}\">{0}</a>", text(name));
    }
    for options in [&schema["anyOf"], &schema["oneOf"]] {
        // Where properties stand beside them, the options only say which of those are needed.
        if options.is_array() && !schema["properties"].is_object() {
            return items(options).map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    if schema["enum"].is_array() {
        let words = items(&schema["enum"]).map(|word| format!("<code>{}</code>", text(&word.to_string())));
        return words.collect::<Vec<_>>().join(" ");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => vec!["anything"],
    };
    let mut words: Vec<String> = types
        .into_iter()
        .map(|word| match word {
            "array" => format!("list of {}", kind(&schema["items"])),
            "object" if schema["properties"].is_object() => {
                let fields =
                    entries(&schema["properties"]).map(|(name, field)| format!("{}: {}", text(name), kind(field)));
                format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
            }
            "object" if schema["additionalProperties"].is_object() => {
                format!("map of {}", kind(&schema["additionalProperties"]))
            }
            word => schema["format"].as_str().filter(|_| word == "string").unwrap_or(word).to_owned(),
        })
        .collect();
    for (name, sign) in [("minLength", "at least"), ("maxLength", "at most"), ("minimum", "from"), ("maximum", "to")] {
        if let Some(limit) = schema[name].as_i64() {
            words.push(format!("{sign} {limit}"));
        }
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_tells_of_every_operation_and_loads_nothing() {
        let document = api_document::document();
        let page = page(&document);
        for (path, methods) in entries(&document["paths"]) {
            for (_, operation) in entries(methods) {
                assert!(page.contains(&format!("<details id=\"{}\"", field(operation, "operationId"))), "{path}");
            }
        }
        for forbidden in ["<script", "src=", "http://", "https://", "url(", "@import", "style="] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn text_cannot_leave_its_place() {
        assert_eq!(text("a <b> & `c` \"d\""), "a &lt;b&gt; &amp; <code>c</code> &quot;d&quot;");
        assert_eq!(text("an `open end"), "an <code>open end</code>");
    }
}

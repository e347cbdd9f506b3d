//! An MCP server that tells tides and misbehaves on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, InitializeResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, Tool, ToolAnnotations,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value, json};

/// The server. All connections share what it knows.
#[derive(Clone, Default)]
pub(crate) struct Tides {
    /// Whether it has grown one tool more.
    pub(crate) grown: Arc<AtomicBool>,
    /// Connections that were greeted.
    pub(crate) greeted: Arc<AtomicUsize>,
}

fn tool(name: &'static str, schema: Value) -> Tool {
    let schema: Map<String, Value> = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name, format!("The tool {name}."), schema)
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

impl ServerHandler for Tides {
    fn get_info(&self) -> InitializeResult {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        InitializeResult::new(capabilities)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(Implementation::new("tides", "1"))
    }

    async fn on_initialized(&self, _context: NotificationContext<RoleServer>) {
        self.greeted.fetch_add(1, Ordering::SeqCst);
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let port = json!({"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]});
        let mut tools = vec![
            tool("tide.look/up", port).with_annotations(ToolAnnotations::new().read_only(true)),
            tool("chart", json!({"type": "object"})),
            tool("fails", json!({"type": "object"})),
            tool("hangs", json!({"type": "object"})),
            tool("dies", json!({"type": "object"})),
            tool("grow", json!({"type": "object"})),
            tool("environment", json!({"type": "object"})),
            tool("odd", json!({"type": "object", "properties": {"what is it": {"type": 7}}})),
        ];
        if self.grown.load(Ordering::SeqCst) {
            tools.push(tool("wind", json!({"type": "object"})));
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let result = match request.name.as_ref() {
            "tide.look/up" => text(format!("{}: 5 m", arguments["port"].as_str().unwrap_or_default())),
            "chart" => CallToolResult::success(vec![
                ContentBlock::text("The chart:"),
                ContentBlock::image("iVBORw0KGgo=", "image/png"),
            ]),
            "fails" => CallToolResult::error(vec![ContentBlock::text("no gauge")]),
            "hangs" => {
                context.ct.cancelled().await;
                text("too late")
            }
            "dies" => std::process::exit(7),
            "grow" => {
                self.grown.store(true, Ordering::SeqCst);
                if context.peer.notify_tool_list_changed().await.is_err() {
                    return Err(ErrorData::internal_error("nobody hears of it", None));
                }
                text("grown")
            }
            "environment" => {
                let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
                names.sort();
                text(names.join(" "))
            }
            "wind" => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                text("a breeze")
            }
            other => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        };
        Ok(result.into())
    }
}

//! What a room is told of a model's work, in the form that every Band SDK reads.

use std::sync::Arc;

use bandstand_llm::client::WireTap;
use bandstand_llm::run::Observer;
use bandstand_llm::transcript::{
    Part, Reply, ToolCall, ToolInput, ToolName, ToolResult, Transcript, Usage, room as rows,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::json;

use super::Emit;
use crate::client::EventDraft;
use crate::client::model::message_type;
use crate::tools::{AgentTools, has_visible_content, platform_name};
use crate::trace::TurnTrace;

/// Posts events, and has finished steps kept.
pub(super) struct Reporter<'a, K> {
    pub(super) tools: &'a AgentTools,
    pub(super) emit: Emit,
    pub(super) keep: K,
    pub(super) trace: Option<Arc<TurnTrace>>,
}

impl<K: FnMut(&Transcript) + Send> Observer for Reporter<'_, K> {
    fn tap(&self) -> Option<Arc<dyn WireTap>> {
        let trace = self.trace.clone()?;
        Some(trace)
    }

    fn on_reply<'a>(&'a mut self, reply: &'a Reply) -> BoxFuture<'a, ()> {
        if let Some(trace) = &self.trace {
            trace.parsed(reply);
        }
        async move {
            for part in &reply.message.parts {
                match part {
                    Part::Reasoning(thought) if self.emit.thoughts && has_visible_content(&thought.text) => {
                        post(self.tools, EventDraft::thought(thought.text.as_str())).await;
                    }
                    Part::ToolCall(call) if self.emit.tool_calls => {
                        let event = rows::call_event(&shown(call));
                        post(self.tools, EventDraft::new(event.message_type, event.content)).await;
                    }
                    _ => {}
                }
            }
        }
        .boxed()
    }

    fn on_results<'a>(
        &'a mut self,
        results: &'a [(ToolName, ToolResult)],
        transcript: &'a Transcript,
    ) -> BoxFuture<'a, ()> {
        (self.keep)(transcript);
        if let Some(trace) = &self.trace {
            trace.results(results, transcript);
        }
        async move {
            if !self.emit.tool_calls {
                return;
            }
            for (name, result) in results {
                let event = rows::result_event(result, name);
                post(self.tools, EventDraft::new(event.message_type, event.content)).await;
            }
        }
        .boxed()
    }
}

/// A call as the room sees it: without the content of a file, which is a message of its own.
fn shown(call: &ToolCall) -> ToolCall {
    let mut call = call.clone();
    if platform_name(call.name.as_str()) == Some("band_send_room_file")
        && let ToolInput::Object { fields, text } = &mut call.input
        && let Some(content) = fields.get_mut("content")
    {
        let bytes = content.as_str().map_or(0, str::len);
        *content = format!("[{bytes} bytes]").into();
        *text = None;
    }
    call
}

/// Tokens of the turn, unless there were none.
pub(super) async fn report_usage(tools: &AgentTools, usage: &Usage) {
    if [usage.input, usage.output, usage.cache_read, usage.cache_write].iter().all(|tokens| *tokens == 0) {
        return;
    }
    let text = format!("Token usage: input={} output={}", usage.input, usage.output);
    let numbers = json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
    });
    post(tools, EventDraft::new(message_type::TASK, text).metadata(json!({ "band_usage": numbers }))).await;
}

/// Events never break a turn. That the agent is stopped here is found by the next thing that it does.
async fn post(tools: &AgentTools, event: EventDraft) {
    let kind = event.message_type.clone();
    if let Err(error) = tools.send_event(event).await {
        tracing::warn!(%error, kind, "an event was not posted");
    }
}

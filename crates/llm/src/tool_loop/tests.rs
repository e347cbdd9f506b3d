use bandstand_transcript::{Format, decode_history, decode_reply};
use serde_json::json;

use super::*;

/// `read*` may run beside others, `done` ends the loop, `quiet` does if nothing failed, arguments must not hold `bad`.
struct Fixed;

impl Tools for Fixed {
    fn names(&self) -> Vec<ToolName> {
        ["read", "read2", "write", "done", "quiet"].into_iter().map(ToolName::new).collect()
    }

    fn has(&self, name: &ToolName) -> bool {
        self.names().contains(name)
    }

    fn check(&self, _: &ToolName, arguments: &Map<String, Value>) -> Result<(), String> {
        if arguments.contains_key("bad") { Err("bad: Extra inputs are not permitted".to_owned()) } else { Ok(()) }
    }

    fn may_run_in_parallel(&self, name: &ToolName) -> bool {
        name.as_str().starts_with("read")
    }

    fn is_terminal(&self, name: &ToolName) -> bool {
        name.as_str() == "done"
    }

    fn concludes(&self, name: &ToolName) -> bool {
        name.as_str() == "quiet"
    }
}

fn begun(policy: Policy) -> ToolLoop {
    let history = decode_history(&json!({ "messages": [{ "role": "user", "content": "Q" }] }), Format::OpenAiChat);
    let mut running = ToolLoop::new(history.expect("a history").transcript, policy);
    assert_eq!(running.start(), [Command::CallModel]);
    running
}

fn reply(text: &str, calls: &[(&str, &str, &str)], label: &str) -> Input {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(id, name, arguments)| {
            json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
        })
        .collect();
    let value = json!({
        "choices": [{ "index": 0, "finish_reason": label,
            "message": { "role": "assistant", "content": text, "tool_calls": calls } }],
        "usage": { "prompt_tokens": 60, "completion_tokens": 40 },
    });
    Input::Reply(Box::new(decode_reply(&value, Format::OpenAiChat).expect("a reply")))
}

fn done(id: &str, text: &str) -> Input {
    Input::ToolDone { id: ToolCallId::new(id), output: ToolOutput::text(text) }
}

fn started(commands: &[Command]) -> Vec<&str> {
    commands
        .iter()
        .map(|command| match command {
            Command::RunTool(call) => call.id.as_str(),
            Command::CallModel => "model",
            Command::Finish(outcome) => outcome.name(),
        })
        .collect()
}

fn results(running: &ToolLoop) -> Vec<(String, String, bool)> {
    let results = running.transcript().messages.iter().flat_map(|message| message.results());
    results.map(|result| (result.call_id.to_string(), result.output.all_text(), result.output.is_error)).collect()
}

#[test]
fn what_may_run_together_does_and_results_keep_the_order_of_the_calls() {
    let mut running = begun(Policy::default());
    let calls = [("a", "read", "{}"), ("b", "read2", "{}"), ("c", "write", "{}"), ("d", "read", "{}")];
    let commands = running.step(reply("", &calls, "tool_calls"), &Fixed);
    assert_eq!(started(&commands), ["a", "b"]);
    assert!(running.step(done("b", "2"), &Fixed).is_empty());
    assert!(running.step(done("b", "again"), &Fixed).is_empty());
    assert_eq!(started(&running.step(done("a", "1"), &Fixed)), ["c"]);
    let message = Message::text(Role::User, "meanwhile");
    assert!(running.step(Input::UserMessage(message), &Fixed).is_empty());
    assert_eq!(started(&running.step(done("c", "3"), &Fixed)), ["d"]);
    assert_eq!(started(&running.step(done("d", "4"), &Fixed)), ["model"]);
    let ids: Vec<String> = results(&running).into_iter().map(|(id, text, _)| id + &text).collect();
    assert_eq!(ids, ["a1", "b2", "c3", "d4"]);
    let last = running.transcript().messages.last().expect("a message");
    assert_eq!((last.role, last.plain_text()), (Role::User, "meanwhile".to_owned()));
    let end = running.step(reply("All done.", &[], "stop"), &Fixed);
    assert_eq!(end, [Command::Finish(Outcome::Answer { text: "All done.".to_owned() })]);
    assert!(running.step(done("a", "late"), &Fixed).is_empty());
}

#[test]
fn what_cannot_run_is_answered() {
    let mut running = begun(Policy::default());
    let calls = [("a", "nope", "{}"), ("b", "read", "{\"bad\":1}"), ("c", "read", "{\"x\":")];
    assert_eq!(started(&running.step(reply("", &calls, "stop"), &Fixed)), ["model"]);
    let results = results(&running);
    assert!(results.iter().all(|(_, _, failed)| *failed));
    assert!(results[0].1.contains("Unknown tool: nope") && results[0].1.contains("read2"));
    assert!(results[1].1.contains("Extra inputs"));
    assert!(results[2].1.contains("not a JSON object"));
}

#[test]
fn limits_denials_and_interruptions_leave_a_valid_history() {
    let limits = Limits { max_tokens: Some(100), ..Limits::default() };
    let mut running = begun(Policy { limits, ..Policy::default() });
    running.step(reply("", &[("a", "read", "{}")], "tool_calls"), &Fixed);
    assert_eq!(started(&running.step(done("a", "1"), &Fixed)), ["max_tokens"]);

    for (input, outcome) in [(Input::Cancelled, "cancelled"), (Input::TimeUp, "time_limit")] {
        let mut running = begun(Policy::default());
        running.step(reply("", &[("a", "write", "{}"), ("b", "write", "{}")], "tool_calls"), &Fixed);
        assert_eq!(started(&running.step(input, &Fixed)), [outcome]);
        assert!(running.transcript().open_calls().is_empty());
        assert_eq!(results(&running).len(), 2);
    }

    let denied = |id: &str| Input::Denied { id: ToolCallId::new(id), reason: "the owner said no".to_owned() };
    let mut running = begun(Policy::default());
    running.step(reply("", &[("a", "write", "{}"), ("b", "write", "{}")], "tool_calls"), &Fixed);
    assert_eq!(started(&running.step(denied("a"), &Fixed)), ["approval_denied"]);
    assert_eq!(results(&running).len(), 2);

    let mut running = begun(Policy { on_denied: OnDenied::ReportError, ..Policy::default() });
    running.step(reply("", &[("a", "write", "{}")], "tool_calls"), &Fixed);
    assert_eq!(started(&running.step(denied("a"), &Fixed)), ["model"]);
    assert!(results(&running)[0].1.contains("the owner said no"));
}

#[test]
fn a_terminal_tool_ends_the_loop_only_when_it_succeeds() {
    let calls = [("a", "done", "{}"), ("b", "read", "{}")];
    let mut running = begun(Policy::default());
    assert_eq!(started(&running.step(reply("", &calls, "tool_calls"), &Fixed)), ["a"]);
    assert_eq!(started(&running.step(done("a", "ok"), &Fixed)), ["terminal_tool"]);
    assert!(results(&running)[1].2);

    let mut running = begun(Policy::default());
    running.step(reply("", &calls, "tool_calls"), &Fixed);
    let failed = Input::ToolDone { id: ToolCallId::new("a"), output: ToolOutput::error("no") };
    assert_eq!(started(&running.step(failed, &Fixed)), ["b"]);
    assert_eq!(started(&running.step(done("b", "ok"), &Fixed)), ["model"]);
}

#[test]
fn a_concluding_tool_ends_the_loop_only_when_all_calls_of_its_turn_succeed() {
    let calls = [("a", "quiet", "{}"), ("b", "write", "{}")];
    for (output, end) in [(ToolOutput::text("ok"), "terminal_tool"), (ToolOutput::error("no"), "model")] {
        let mut running = begun(Policy::default());
        assert_eq!(started(&running.step(reply("", &calls, "tool_calls"), &Fixed)), ["a"]);
        assert_eq!(started(&running.step(done("a", "ok"), &Fixed)), ["b"]);
        let last = Input::ToolDone { id: ToolCallId::new("b"), output };
        assert_eq!(started(&running.step(last, &Fixed)), [end]);
    }
}

#[test]
fn an_interrupted_history_is_closed_and_a_waiting_one_goes_on() {
    let history = json!({ "messages": [
        { "role": "user", "content": "Q" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "a", "type": "function", "function": { "name": "write", "arguments": "{}" } },
            { "id": "b", "type": "function", "function": { "name": "write", "arguments": "{}" } },
        ] },
        { "role": "tool", "tool_call_id": "a", "content": "1" },
    ] });
    let transcript = decode_history(&history, Format::OpenAiChat).expect("a history").transcript;
    let mut running = ToolLoop::new(transcript.clone(), Policy::default());
    assert_eq!(running.start(), [Command::CallModel]);
    assert_eq!(results(&running)[1].0, "b");
    assert!(results(&running)[1].2);

    let mut running = ToolLoop::new(transcript, Policy::default());
    assert_eq!(started(&running.resume(&Fixed)), ["b"]);
    assert_eq!(started(&running.step(done("b", "2"), &Fixed)), ["model"]);
    assert_eq!(results(&running).len(), 2);
}

#[test]
fn refusals_filters_and_failures_run_nothing() {
    for (label, outcome) in [("content_filter", "filter"), ("length", "length")] {
        let mut running = begun(Policy::default());
        assert_eq!(started(&running.step(reply("So", &[("a", "read", "{}")], label), &Fixed)), [outcome]);
        assert!(running.transcript().open_calls().is_empty());
        assert_eq!(running.outcome().and_then(Outcome::text), Some("So"));
    }
    let mut running = begun(Policy::default());
    let error = ProviderError { kind: "overloaded_error".to_owned(), message: "x".to_owned(), retryable: true };
    assert_eq!(started(&running.step(Input::ModelFailed(error), &Fixed)), ["error"]);
    assert_eq!(running.transcript().messages.len(), 1);
}

//! What a traced turn leaves on disk.

use std::path::{Path, PathBuf};

use bandstand_agent::adapter::LlmSettings;
use bandstand_agent::llm::transcript::{Format, Transcript};
use bandstand_agent::trace::{ABOUT, REPLY_STREAM, Stage, Trace, TraceLimits};
use bandstand_testkit::TestServer;
use bandstand_testkit::model::{Answer, ModelServer, calls, says};
use serde_json::{Value, json};

use crate::llm::{model, start_as, toolbox};

/// All folders of steps, in order.
fn steps(folder: &Path) -> Vec<PathBuf> {
    let mut steps: Vec<PathBuf> =
        below(folder).iter().flat_map(|room| below(room)).flat_map(|turn| below(&turn)).collect();
    steps.sort();
    steps
}

fn below(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn read(step: &Path, file: &str) -> Value {
    let text = std::fs::read_to_string(step.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    serde_json::from_str(&text).unwrap()
}

fn transcript(step: &Path, stage: Stage) -> Transcript {
    let read = read(step, stage.file());
    let kept = if stage == Stage::Normalised { &read } else { &read["transcript"] };
    Transcript::from_canonical(kept).unwrap()
}

#[tokio::test]
async fn every_step_of_a_turn_has_its_seven_stages() {
    let server = TestServer::start().await;
    for (api, stream) in [(Format::OpenAiChat, false), (Format::OpenAiResponses, true), (Format::Anthropic, true)] {
        let folder = tempfile::tempdir().unwrap();
        let scripted = ModelServer::start([
            Answer::Reply(calls(&[("c1", "tide", json!({"port": "Kestrel"})), ("c2", "wind", json!({"port": "K"}))])),
            Answer::Reply(says("It is 5 m.")),
            Answer::Reply(says("As before, and sk-secret-0123456789 stays here.")),
        ])
        .await;
        let seat = server.agent(&format!("traced over {api}")).await;
        let room = server.owner().room(&[&seat]).await;
        let mut watch = room.watch().await;
        let secrets = ["sk-secret-0123456789".to_owned(), seat.key.clone()];
        let trace = Trace::open(folder.path().join("trace"), TraceLimits::default(), secrets).unwrap();
        let settings = LlmSettings { trace: Some(trace.clone()), ..LlmSettings::default() };
        let agent = start_as(&server, &seat, model(&scripted, api, stream), toolbox(), settings);
        for question in ["How high is the water?", "And now?"] {
            let asked = room.says(question, &[&seat]).await;
            watch.status(asked, &seat, "processed").await;
        }
        agent.stop().await;
        trace.written().await;

        let steps = steps(trace.folder());
        assert_eq!(steps.len(), 3, "{steps:?}");
        let reply = if stream { REPLY_STREAM } else { Stage::Reply.file() };
        for step in &steps {
            let mut files: Vec<String> =
                below(step).iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
            files.sort();
            let mut expected: Vec<&str> = Stage::ALL.into_iter().map(Stage::file).collect();
            expected[3] = reply;
            expected.push(ABOUT);
            assert_eq!(files, expected, "{}", step.display());
            for file in &files {
                let text = std::fs::read_to_string(step.join(file)).unwrap();
                let lower = text.to_ascii_lowercase();
                let secret = ["sk-secret", seat.key.as_str(), "authorization", "x-api-key"];
                assert!(!secret.iter().any(|word| lower.contains(word)), "{file}: {text}");
            }
        }
        // What went out and came back is what the provider saw and said.
        let sent = scripted.asked();
        for (step, asked) in steps.iter().zip(&sent) {
            assert_eq!(read(step, Stage::Payload.file()), asked.body);
        }
        assert_eq!(read(&steps[0], Stage::ReplayedPayload.file()), sent[1].body);
        let about = read(&steps[0], ABOUT);
        let known = (about["api"].as_str(), about["replayed"].as_str(), about["status"].as_u64());
        assert_eq!(known, (Some(api.name()), Some("sent"), Some(200)));
        assert_eq!(read(&steps[1], ABOUT)["replayed"], "prepared");
        assert!(read(&steps[1], Stage::ReplayedPayload.file()).to_string().contains("It is 5 m."));

        let first = transcript(&steps[0], Stage::ClientHistory);
        assert!(first.messages.iter().any(|message| message.plain_text().contains("How high is the water?")));
        assert_eq!(transcript(&steps[0], Stage::Parsed).messages[0].calls().count(), 2);
        let output = transcript(&steps[0], Stage::Output);
        let results: Vec<_> = output.messages[1].results().collect();
        assert_eq!((results[0].output.all_text().as_str(), results[1].output.is_error), ("Kestrel: 5 m", true));
        // What a step must begin with is what the one before left, beside the system text.
        let begins = transcript(&steps[1], Stage::ClientHistory);
        assert_eq!(begins.messages, transcript(&steps[1], Stage::Normalised).messages);
        let ends = read(&steps[1], Stage::Output.file());
        assert_eq!(
            (&ends["outcome"], &ends["said"], &ends["failure"]),
            (&json!("end"), &json!("It is 5 m."), &json!(null))
        );
    }
}

#[tokio::test]
async fn a_refusal_is_traced_as_far_as_it_went() {
    let server = TestServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let refusal = json!({"error": {"type": "invalid_request_error", "message": "not with sk-secret-0123456789"}});
    let scripted = ModelServer::start([Answer::Status(400, Vec::new(), refusal)]).await;
    let seat = server.agent("refused").await;
    let room = server.owner().room(&[&seat]).await;
    let mut watch = room.watch().await;
    let trace = Trace::open(folder.path(), TraceLimits::default(), []).unwrap();
    let settings = LlmSettings { trace: Some(trace.clone()), ..LlmSettings::default() };
    let agent = start_as(&server, &seat, model(&scripted, Format::OpenAiChat, true), toolbox(), settings);
    let asked = room.says("Well?", &[&seat]).await;
    watch.status(asked, &seat, "failed").await;
    agent.stop().await;
    trace.written().await;
    let steps = steps(trace.folder());
    assert_eq!(steps.len(), 1);
    // The key is out of it before anybody said that it is secret.
    assert_eq!(read(&steps[0], Stage::Reply.file())["error"]["message"], "not with [REDACTED]");
    assert_eq!(read(&steps[0], ABOUT)["status"], 400);
    assert!(!steps[0].join(Stage::Parsed.file()).exists() && !steps[0].join(Stage::ReplayedPayload.file()).exists());
    let output = read(&steps[0], Stage::Output.file());
    assert_eq!(output["outcome"], "error");
    assert!(output["failure"].as_str().is_some_and(|why| why.contains("400")), "{output}");
}

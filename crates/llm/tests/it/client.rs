//! Requests, replies, and everything that goes wrong between.

use std::time::{Duration, Instant};

use bandstand_llm::client::{Ask, Model as _, ModelClient, ModelError, ModelOptions, Phase};
use bandstand_llm::transcript::stream::Delta;
use bandstand_llm::transcript::{Format, Message, ProviderError, Reply, Role, StopReason, Transcript, Usage};
use bandstand_testkit::model::{Answer, ModelServer, calls, says};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{client, options, ways};

async fn ask(model: &ModelClient) -> Result<Reply, ModelError> {
    let transcript = Transcript::new(vec![Message::text(Role::User, "High water at Kestrel Quay?")]);
    let cancel = CancellationToken::new();
    model.reply(Ask { transcript: &transcript, tools: &[], cancel: &cancel }, &mut |_| {}).await
}

#[tokio::test]
async fn however_a_stream_is_cut_it_is_the_plain_reply() {
    let mut reply = calls(&[("call_a", "tide", json!({"port": "Kestrel Quay ⚓"})), ("call_b", "wind", json!({}))]);
    reply.message.parts.insert(0, says("Ahoy! I'll look.").message.parts.remove(0));
    for api in Format::ALL {
        let server = ModelServer::start(vec![Answer::Reply(reply.clone()); 4]).await;
        let plain = ask(&client(&server, api, false)).await.expect("a reply");
        for bytes in [1, 7, usize::MAX] {
            let server = ModelServer::start([Answer::Reply(reply.clone())]).await.in_pieces(bytes, Duration::ZERO);
            let streamed = ask(&client(&server, api, true)).await.expect("a reply");
            assert_eq!(streamed, plain, "{api}, {bytes} bytes a piece");
            assert!(server.asked()[0].streamed());
        }
        assert_eq!((plain.stop_reason, plain.message.calls().count()), (StopReason::ToolUse, 2));
        assert_eq!(plain.usage, Some(Usage { input: 10, output: 5, ..Usage::default() }));
    }
}

#[tokio::test]
async fn deltas_come_while_the_answer_grows() {
    for (api, stream) in ways() {
        let server = ModelServer::start([Answer::Reply(says("Ahoy!"))]).await;
        let transcript = Transcript::new(vec![Message::text(Role::User, "Hi")]);
        let cancel = CancellationToken::new();
        let mut text = String::new();
        let mut note = |delta: &Delta| {
            if let Delta::Text(more) = delta {
                text.push_str(more);
            }
        };
        let model = client(&server, api, stream);
        model.reply(Ask { transcript: &transcript, tools: &[], cancel: &cancel }, &mut note).await.expect("a reply");
        assert_eq!(text, "Ahoy!", "{api} {stream}");
        let key = if api == Format::Anthropic { "x-api-key" } else { "authorization" };
        assert!(server.asked()[0].header(key).is_some_and(|key| key.ends_with("sk-secret-0123456789")));
    }
}

#[tokio::test]
async fn retries_follow_the_providers_headers() {
    let refuse = |status, headers: &[(&'static str, &str)]| {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let said = json!({"error": {"type": "rate_limit_error", "message": "slow down"}});
        Answer::Status(status, headers, said)
    };
    for (answer, again) in [
        (refuse(429, &[("retry-after-ms", "2")]), true),
        (refuse(429, &[]), true),
        (refuse(503, &[("x-should-retry", "false")]), false),
        (refuse(400, &[("x-should-retry", "true")]), true),
        (refuse(400, &[]), false),
        (refuse(429, &[("retry-after", "3600")]), false),
        (Answer::Reset, true),
    ] {
        for (api, stream) in ways() {
            let server = ModelServer::start([answer.clone(), Answer::Reply(says("Ahoy!"))]).await;
            let reply = ask(&client(&server, api, stream)).await;
            assert_eq!(reply.is_ok(), again, "{api} {stream} {answer:?}");
            assert_eq!(server.asked().len(), if again { 2 } else { 1 }, "{api} {stream} {answer:?}");
        }
    }
    let server = ModelServer::start(vec![refuse(529, &[]); 9]).await;
    let error = ask(&client(&server, Format::Anthropic, true)).await.expect_err("a refusal");
    assert_eq!((error.status(), server.asked().len()), (Some(529), 3));

    let server = ModelServer::start([refuse(429, &[("retry-after", "0.2")]), Answer::Reply(says("Ahoy!"))]).await;
    let start = Instant::now();
    ask(&client(&server, Format::OpenAiChat, true)).await.expect("a reply");
    assert!(start.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn a_reply_that_breaks_off_is_kept_and_not_asked_for_again() {
    let long = says(&"Ahoy! ".repeat(200));
    for api in Format::ALL {
        for answer in [Answer::CutAfter(long.clone(), 3000), Answer::EndAfter(long.clone(), 3000)] {
            let server =
                ModelServer::start([answer, Answer::Reply(says("again"))]).await.in_pieces(100, Duration::ZERO);
            let error = ask(&client(&server, api, true)).await.expect_err("it broke");
            assert!(matches!(error, ModelError::Broken { .. }), "{api} {error:?}");
            let kept = error.partial().expect("what was received");
            assert!(kept.message.plain_text().starts_with("Ahoy!"), "{api}");
            assert_eq!((kept.stop_reason, server.asked().len()), (StopReason::Error, 1));
        }
        let server = ModelServer::start([Answer::CutAfter(long.clone(), 100), Answer::Reply(says("again"))]).await;
        let error = ask(&client(&server, api, false)).await.expect_err("it broke");
        assert!(matches!(error, ModelError::Broken { partial: None }), "{api} {error:?}");
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_provider_that_fails_in_mid_stream_is_an_error_without_its_words() {
    let overloaded = ProviderError {
        kind: "overloaded_error".into(),
        message: "too busy for sk-secret-0123456789".into(),
        retryable: true,
    };
    for api in Format::ALL {
        let answers = [Answer::Fails("Ahoy".into(), overloaded.clone()), Answer::Reply(says("again"))];
        let server = ModelServer::start(answers).await;
        let error = ask(&client(&server, api, true)).await.expect_err("it failed");
        assert!(matches!(error, ModelError::Failed { .. }), "{api} {error:?}");
        assert_eq!(error.partial().map(|reply| reply.message.plain_text()).as_deref(), Some("Ahoy"), "{api}");
        assert_eq!(error.provider().map(|said| said.message.as_str()), Some("too busy for [REDACTED]"), "{api}");
        assert!(!error.to_string().contains("busy"), "{error}");
        assert_eq!(server.asked().len(), 1);

        // Before anything was said, the same is worth another try.
        let answers = [Answer::Fails(String::new(), overloaded.clone()), Answer::Reply(says("again"))];
        let server = ModelServer::start(answers).await;
        assert!(ask(&client(&server, api, true)).await.is_ok(), "{api}");
    }
}

#[tokio::test]
async fn nothing_is_waited_for_without_end() {
    for (api, stream) in ways() {
        let server = ModelServer::start([Answer::Silence]).await;
        let mut hasty = options(&server, api, stream);
        (hasty.first_byte_timeout, hasty.retries) = (Duration::from_millis(50), 0);
        let error = ask(&ModelClient::new(hasty.clone()).expect("a client")).await.expect_err("silence");
        assert!(matches!(error, ModelError::TimedOut { phase: Phase::FirstByte, .. }), "{api} {error:?}");

        server.then([Answer::StallAfter(says(&"Ahoy! ".repeat(200)), 3000)]);
        (hasty.first_byte_timeout, hasty.idle_timeout) = (Duration::from_secs(20), Duration::from_millis(50));
        let error = ask(&ModelClient::new(hasty).expect("a client")).await.expect_err("a stall");
        assert!(matches!(error, ModelError::TimedOut { phase: Phase::Idle, .. }), "{api} {error:?}");
        assert_eq!(error.partial().is_some(), stream);
    }
}

#[tokio::test]
async fn a_request_can_be_cancelled() {
    let server = ModelServer::start([Answer::Silence]).await;
    let model = client(&server, Format::OpenAiResponses, true);
    let cancel = CancellationToken::new();
    let transcript = Transcript::new(vec![Message::text(Role::User, "Hi")]);
    let mut ignore = |_: &Delta| {};
    let asking = model.reply(Ask { transcript: &transcript, tools: &[], cancel: &cancel }, &mut ignore);
    let (error, ()) = tokio::join!(asking, async {
        server.asked_times(1).await;
        cancel.cancel();
    });
    assert!(matches!(error, Err(ModelError::Cancelled)));
}

#[test]
fn options_that_make_no_request() {
    let wrong = |change: fn(&mut ModelOptions)| {
        let mut options = ModelOptions::new(Format::Anthropic, "m");
        change(&mut options);
        ModelClient::new(options).expect_err("wrong options").to_string()
    };
    assert!(wrong(|it| it.base_url = "ftp://x".into()).contains("http://"));
    assert!(wrong(|it| it.model = " ".into()).contains("no name"));
    assert!(wrong(|it| it.key = Some("a\nb".into())).contains("the key"));
    let vllm = wrong(|it| it.profile = bandstand_llm::transcript::Profile::named("vllm").unwrap());
    assert!(vllm.contains("does not speak"), "{vllm}");
}

//! Tools that a person must allow, with the question and the answer in a real room.

use std::time::Duration;

use bandstand_agent::adapter::{Adapter, IncomingMessage, TurnError, TurnInput};
use bandstand_agent::approval::{Approvals, Approvers, Taken};
use bandstand_agent::registry::{FailureKind, Tool, ToolError, ToolOutcome};
use bandstand_agent::runtime::{Agent, RuntimeSettings};
use bandstand_agent::tools::{AgentTools, Approval, Binding, Effect, Toolbox};
use bandstand_agent::wire::ids::RoomId;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{PATIENCE, TestAgent, World};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pay {
    amount: i64,
}

fn toolbox(approval: Approval) -> Toolbox {
    let pay =
        Tool::new("pay", |_: AgentTools, pay: Pay| async move { Ok::<_, ToolError>(format!("paid {}", pay.amount)) });
    Toolbox::default().with(pay.effect(Effect::Act).approval(approval)).unwrap()
}

fn tools(bob: &TestAgent, room: RoomId, approvals: &Approvals, approval: Approval) -> AgentTools {
    let toolbox = toolbox(approval).approvals_by(approvals.clone());
    let binding = Binding { toolbox: toolbox.into(), ..Binding::default() };
    bob.tools_with(room, binding)
}

/// Calls the tool, and answers the question with these words once it is asked.
async fn asked(world: &World, bob: &TestAgent, tools: &AgentTools, words: &str) -> ToolOutcome {
    let room = tools.room();
    let call = tools.execute_tool_call_structured("pay", json!({"amount": 5}));
    let person = async {
        let question = loop {
            let history = world.history(room).await;
            if let Some((_, content)) = history.iter().find(|(_, content)| content.contains("/approve")) {
                break content.clone();
            }
        };
        assert!(question.contains("May I call `pay` with {\"amount\":5}?"), "{question}");
        let id = question.split("/approve ").nth(1).unwrap()[..4].to_owned();
        world.says(room, &words.replace("ID", &id), &[bob]).await;
        let answer = bob.client.next_message(room).await.unwrap().unwrap();
        tools.approvals().take(&IncomingMessage::of(answer, room))
    };
    let (outcome, taken) = tokio::time::timeout(PATIENCE, async { tokio::join!(call, person) }).await.unwrap();
    assert!(matches!(taken, Taken::Yes(_)), "{taken:?}");
    outcome.unwrap()
}

#[tokio::test]
async fn a_person_allows_a_call() {
    let world = World::start().await;
    let bob = world.agent("Bob").await;
    let room = world.room(&[&bob]).await;
    let tools = tools(&bob, room, &Approvals::default(), Approval::Ask);
    let outcome = asked(&world, &bob, &tools, "/approve ID").await;
    assert_eq!((outcome.text().as_str(), outcome.effect()), ("paid 5", Some(Effect::Act)));
    assert!(tools.turn().complete() && !tools.turn().replied());
    world.end().await;
}

#[tokio::test]
async fn a_person_declines_a_call() {
    let world = World::start().await;
    let bob = world.agent("Bob").await;
    let room = world.room(&[&bob]).await;
    let tools = tools(&bob, room, &Approvals::default(), Approval::Ask);
    let outcome = asked(&world, &bob, &tools, "/decline").await;
    assert_eq!(outcome.text(), "pay was not called: a person declined it.");
    assert_eq!(outcome.failure_kind(), Some(FailureKind::NotApproved));
    assert!(!tools.turn().complete());
    world.end().await;
}

#[tokio::test]
async fn silence_and_nobody_to_ask_mean_no() {
    let world = World::start().await;
    let bob = world.agent("Bob").await;
    let room = world.room(&[&bob]).await;
    let call = async |approvals: Approvals, approval: Approval, arguments: serde_json::Value| {
        let tools = tools(&bob, room, &approvals, approval);
        let text = tools.execute_tool_call_structured("pay", arguments).await.unwrap().text();
        assert!(!approvals.is_waiting(room));
        text
    };
    let at_once = || Approvals::new(Approvers::People, Duration::ZERO);
    let five = || json!({"amount": 5});
    assert_eq!(call(at_once(), Approval::Ask, five()).await, "pay was not called: nobody approved it in time.");
    let nobody = Approvals::new(Approvers::Only([].into()), PATIENCE);
    assert_eq!(call(nobody, Approval::Ask, five()).await, "pay was not called: nobody in the room may decide.");
    assert_eq!(call(at_once(), Approval::Deny, five()).await, "pay was not called: its policy denies it.");
    // Nobody is asked about a call that cannot be made.
    assert_eq!(call(at_once(), Approval::Ask, json!({})).await, "Invalid arguments for pay: amount: Field required");
    world.end().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_withdraws_its_question() {
    let world = World::start().await;
    let bob = world.agent("Bob").await;
    let room = world.room(&[&bob]).await;
    let approvals = Approvals::default();
    let tools = tools(&bob, room, &approvals, Approval::Ask);
    let call = tools.execute_tool_call_structured("pay", json!({"amount": 5}));
    let asked = async {
        while !world.history(room).await.iter().any(|(_, content)| content.contains("/approve")) {}
        assert!(approvals.is_waiting(room));
    };
    tokio::select! {
        outcome = call => panic!("{outcome:?}"),
        () = asked => {}
    }
    assert!(!approvals.is_waiting(room));
    world.end().await;
}

/// Calls the tool whatever it is told.
struct Payer;

#[async_trait::async_trait]
impl Adapter for Payer {
    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        let outcome = input.tools.execute_tool_call_structured("pay", json!({"amount": 5})).await?;
        let sender = input.message.sender.id().map(|id| id.to_string()).unwrap_or_default();
        input.tools.send_message(&outcome.text(), &[sender.as_str()]).await?;
        Ok(())
    }
}

#[tokio::test]
async fn a_running_agent_hears_the_answer_while_its_turn_waits() {
    let world = World::start().await;
    let bob = world.agent("Bob").await;
    let room = world.room(&[&bob]).await;
    let stop = CancellationToken::new();
    let settings = RuntimeSettings { single_instance: false, ..RuntimeSettings::default() };
    let agent = Agent::new(bob.client.clone(), Payer).toolbox(toolbox(Approval::Ask)).settings(settings);
    let running = tokio::spawn(agent.run(stop.clone()));
    world.says(room, "pay", &[&bob]).await;
    let seen = async |text: &str| while !world.history(room).await.iter().any(|(_, content)| content.contains(text)) {};
    let story = async {
        seen("/approve").await;
        world.says(room, "/approve", &[&bob]).await;
        seen("paid 5").await;
        seen("Approved: `pay`").await;
        // The answer is done with: it is no message to be dealt with.
        while bob.client.next_message(room).await.unwrap().is_some() {}
    };
    tokio::time::timeout(PATIENCE, story).await.expect("the agent hears");
    stop.cancel();
    assert!(running.await.unwrap().unwrap().clean);
    world.end().await;
}

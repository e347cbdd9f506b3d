//! `health_check`: whether the server can be reached with each key.

use bandstand_agent::client::HumanPage;

use crate::session::Session;

/// `OK | <scopes> | <address>`, or `Failed | <scope> | <why>`; people come first.
pub(crate) async fn check(session: &Session) -> String {
    let human = async {
        match &session.human {
            Some(human) => Some(human.agents(HumanPage::default()).await.map(drop)),
            None => None,
        }
    };
    let agent = async {
        match &session.agent {
            // Asked anew each time: the key may have been revoked.
            Some(agent) => Some(agent.client().me().await.map(drop)),
            None => None,
        }
    };
    let (human, agent) = futures_util::future::join(human, agent).await;
    let mut good = Vec::new();
    for (scope, result) in [("human", human), ("agent", agent)] {
        match result {
            Some(Ok(())) => good.push(scope),
            Some(Err(error)) => return format!("Failed | {scope} | {error}"),
            None => {}
        }
    }
    format!("OK | {} | {}", good.join(","), session.shown_url)
}

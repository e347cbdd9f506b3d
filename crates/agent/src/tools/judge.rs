//! The end of a turn: judged by the rule, and told to the room.

use super::AgentTools;
use crate::failure::FailureReport;
use crate::turn::{Conclusion, RunEnd, missing_reply};

impl AgentTools {
    /// Judges a run that has ended. If nothing reached the room, the room is told so, unless that is switched off; the
    /// message is marked as failed in any case, and [`Turn::complete`](crate::turn::Turn::complete) says afterwards
    /// whether the room knows.
    pub async fn conclude(&self, end: RunEnd) -> Conclusion {
        let conclusion = self.turn().conclude(end);
        self.tell(conclusion).await;
        conclusion
    }

    /// Judges a turn that a run let go of, at its real end. Nothing is marked any more.
    pub async fn conclude_detached(&self) -> Conclusion {
        let conclusion = self.turn().conclude_detached();
        self.tell(conclusion).await;
        conclusion
    }

    async fn tell(&self, conclusion: Conclusion) {
        if conclusion != Conclusion::MissingReply {
            return;
        }
        tracing::warn!(
            room.id = %self.room(),
            message.id = self.message().map(tracing::field::display),
            "the turn ended without an answer"
        );
        if self.turn().posts_missing_reply()
            && let FailureReport::NotPosted { reason } = self.send_failure(&missing_reply()).await
        {
            tracing::warn!(room.id = %self.room(), reason, "the room could not be told");
        }
    }
}

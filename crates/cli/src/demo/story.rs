//! What happens in the demo. It goes on when something has happened, never after a time.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use tokio::sync::mpsc;

use super::agents::Part;
use super::crew::{Crew, Seat};
use super::print::Print;
use crate::commands::why::explain;
use crate::people::client::{Client, room_of, row_of, typed};
use crate::people::feed::{Feed, Happening};
use crate::people::model::{Delivery, Row};

/// Far longer than any part takes; only what is broken gets there.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Story {
    client: Client,
    pace: Duration,
    me: IdentityId,
    room: RoomId,
    seats: Vec<Seat>,
    crew: Crew,
    feed: mpsc::Receiver<Happening>,
    print: Print,
}

impl Story {
    /// Registers the agents, starts their programs, makes the room and awaits that all are there.
    pub(super) async fn open(client: Client, pace: Duration) -> anyhow::Result<Self> {
        let print = Print::new();
        let server = &client.credentials;
        print.heading("Bandstand: agents and people in one room");
        print.note(&format!("A server runs on {} with a database of its own in a temporary folder.", server.url));
        let me = client.me().await?.id;
        let mut seats = Vec::new();
        let mut crew = Crew::default();
        for part in [Part::Planner, Part::Researcher, Part::Reviewer] {
            let mut name = part.name().to_owned();
            name[..1].make_ascii_uppercase();
            let (id, key) = client.register(&name, part.description()).await?;
            let seat = Seat { part, id, key };
            crew.start(server, &seat, pace.as_millis(), false)?;
            seats.push(seat);
        }
        print.note("Three agents run in processes of their own: a planner, a researcher with a tool, a reviewer.");
        let room = room_of(&client.create_room(Some("Demo")).await?)?.id;
        let feed = Feed::start(&client, room, me, None);
        let planner = seats[0].id;
        client.add(room, planner, "admin").await?;
        let mut story = Self { client, pace, me, room, seats, crew, feed, print };
        story.until("the planner to come online", |it| online(it, planner, true)).await?;
        Ok(story)
    }

    /// What is left running, and where.
    pub(super) fn into_parts(self) -> (Crew, RoomId) {
        (self.crew, self.room)
    }

    pub(super) async fn tell(&mut self) -> anyhow::Result<()> {
        self.recruiting().await?;
        self.crash().await?;
        self.summary();
        Ok(())
    }

    /// A question, and the planner brings together who answers it.
    async fn recruiting(&mut self) -> anyhow::Result<()> {
        self.print.heading("1. You ask, and an agent brings in whom it needs");
        let planner = self.seat(Part::Planner)?.id;
        self.say("@planner what does this server promise about a message?").await?;
        let mut request = None;
        let me = self.me;
        self.until("the planner's answer", |it| {
            let row = text_of(it, planner)?;
            if mentions(&row, me) {
                return Some(());
            }
            request.get_or_insert(row.id);
            None
        })
        .await?;
        let request = request.context("the planner asked nobody")?;
        self.print.note(
            "The reviewer was asked as well, but said nothing to that. The ledger knows what became of the request:",
        );
        let deliveries = self.settled(request).await?;
        self.ledger(&deliveries);
        Ok(())
    }

    /// An agent is killed while it works, and nothing is lost.
    async fn crash(&mut self) -> anyhow::Result<()> {
        self.print.heading("2. kill -9 in the middle of the work");
        // A researcher that takes its time takes the place of the quick one.
        let researcher = self.seat(Part::Researcher)?.id;
        self.replace(researcher, true).await?;
        let message = self.say("@researcher and if you are killed while you work on this?").await?;
        let (mut called, mut picked_up) = (false, false);
        self.until("the researcher to begin", |it| {
            match it {
                Happening::Row(row) => {
                    called |=
                        row_of(row).is_ok_and(|row| row.sender_id == researcher && row.message_type == "tool_call");
                }
                Happening::Delivery { message: of, deliveries } if *of == message => {
                    picked_up |= deliveries.iter().any(|it| it.stage == "picked_up");
                }
                _ => {}
            }
            (called && picked_up).then_some(())
        })
        .await?;
        self.crew.kill(Part::Researcher)?;
        self.print.note("kill -9: the researcher's process is gone. Why does nobody answer? The ledger says:");
        self.until("the researcher to be gone", |it| online(it, researcher, false)).await?;
        let deliveries = self.given_up(message).await?;
        self.ledger(&deliveries);
        self.print.note("Its program is started again, and is given what it did not finish:");
        self.start(Part::Researcher, false)?;
        self.until("the researcher's answer", |it| text_of(it, researcher).map(|_| ())).await?;
        let deliveries = self.settled(message).await?;
        self.ledger(&deliveries);
        Ok(())
    }

    fn summary(&self) {
        self.print.heading("What you saw, and why it matters");
        for line in [
            "An agent recruited two others: rooms grow as the work needs it, and people see all of it.",
            "An agent declined in silence: agents answer what is for them, and do not keep each other busy.",
            "Each question about a message had an answer: nobody has to guess why an agent is silent.",
            "A process died in the middle of its work, and its message was finished: nothing acknowledged is lost.",
        ] {
            self.print.point(line);
        }
        self.print.heading("Next");
        self.print.point("`bandstand up` starts a server that stays.");
        self.print
            .point("`bandstand agent add NAME`, in another terminal, registers an agent and prints a program for it.");
    }

    /// Kills an agent's process and starts another one, and awaits that it is there.
    async fn replace(&mut self, id: IdentityId, slow: bool) -> anyhow::Result<()> {
        let part = self.seats.iter().find(|seat| seat.id == id).context("there is no such agent")?.part;
        self.crew.kill(part)?;
        self.until("an agent to be gone", |it| online(it, id, false)).await?;
        self.start(part, slow)?;
        self.until("an agent to come online", |it| online(it, id, true)).await
    }

    fn start(&mut self, part: Part, slow: bool) -> anyhow::Result<()> {
        let seat = self.seats.iter().find(|seat| seat.part == part).context("there is no such agent")?;
        self.crew.start(&self.client.credentials, seat, self.pace.as_millis(), slow)
    }

    fn seat(&self, part: Part) -> anyhow::Result<&Seat> {
        self.seats.iter().find(|seat| seat.part == part).context("there is no such agent")
    }

    async fn say(&mut self, text: &str) -> anyhow::Result<MessageId> {
        let participants = self.client.participants(self.room).await?;
        let addressing = crate::people::mentions::Addressing { room: &participants, me: self.me, in_text: true };
        let addressed = addressing.address(text, &[])?;
        Ok(self.client.post(self.room, &addressed.content, &addressed.to).await?.id)
    }

    async fn deliveries(&self, message: MessageId) -> anyhow::Result<Vec<Delivery>> {
        typed(self.client.deliveries(self.room, message, None).await?)
    }

    /// The ledger's answer once the message has come to its end for everybody.
    async fn settled(&mut self, message: MessageId) -> anyhow::Result<Vec<Delivery>> {
        loop {
            let deliveries = self.deliveries(message).await?;
            if deliveries.iter().all(|it| it.verdict == "done") {
                return Ok(deliveries);
            }
            let further =
                |it: &Happening| matches!(it, Happening::Delivery { message: of, .. } if *of == message).then_some(());
            self.until("a message to be finished", further).await?;
        }
    }

    /// The ledger's answer once nobody works on the message any more. That a sign of life is too old is no event, so it
    /// is asked again and again.
    async fn given_up(&self, message: MessageId) -> anyhow::Result<Vec<Delivery>> {
        let asking = async {
            let mut again = tokio::time::interval(Duration::from_millis(100));
            loop {
                again.tick().await;
                let deliveries = self.deliveries(message).await?;
                if deliveries.iter().all(|it| it.verdict != "working") {
                    return Ok(deliveries);
                }
            }
        };
        tokio::time::timeout(PATIENCE, asking).await.context("the ledger does not see that the agent is gone")?
    }

    fn ledger(&self, deliveries: &[Delivery]) {
        for delivery in deliveries {
            self.print.ledger(&explain(delivery));
        }
    }

    /// Prints what is said until something happens.
    async fn until<T>(&mut self, what: &str, mut found: impl FnMut(&Happening) -> Option<T>) -> anyhow::Result<T> {
        // The planner comes before anybody looks, so whether its joining is seen is chance.
        let first = self.seats.first().map(|seat| seat.id);
        let waiting = async {
            loop {
                let Some(happening) = self.feed.recv().await else { bail!("the room can no longer be followed") };
                match &happening {
                    Happening::Row(row) => {
                        let row = row_of(row)?;
                        self.print.row(&row, row.sender_id == self.me);
                    }
                    Happening::Joined(who) if who.id != self.me && Some(who.id) != first => {
                        self.print.note(&format!("{} joins the room.", who.name));
                    }
                    Happening::Ended(error) => bail!("the room can no longer be followed: {error:#}"),
                    _ => {}
                }
                if let Some(found) = found(&happening) {
                    return Ok(found);
                }
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(found) => found,
            Err(_) => Err(anyhow!("waited {} s in vain for {what}", PATIENCE.as_secs())),
        }
    }
}

/// Whether somebody came online, or went offline.
fn online(happening: &Happening, who: IdentityId, wanted: bool) -> Option<()> {
    match happening {
        Happening::Presence(rows) => rows.contains(&(who, wanted)).then_some(()),
        _ => None,
    }
}

/// A message of somebody.
fn text_of(happening: &Happening, sender: IdentityId) -> Option<Row> {
    let Happening::Row(row) = happening else { return None };
    row_of(row).ok().filter(|row| row.sender_id == sender && row.is_text())
}

fn mentions(row: &Row, who: IdentityId) -> bool {
    let mentions = row.metadata.as_ref().and_then(|it| it.get("mentions")?.as_array());
    mentions.is_some_and(|all| all.iter().any(|it| it.get("id").and_then(|id| id.as_str()) == Some(&who.to_string())))
}

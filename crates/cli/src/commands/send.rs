//! `bandstand send`.

use std::io::Read as _;
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;

use super::with_client;
use crate::cli::SendArguments;
use crate::output::{Failure, say, say_json};
use crate::people::mentions::Addressing;
use crate::people::{places, text};

/// Longer texts are not read: no server takes them.
const TEXT_MAX: u64 = 1 << 20;

pub(crate) fn run(arguments: &SendArguments) -> Result<ExitCode, Failure> {
    let said = what_is_said(&arguments.text)?;
    with_client(&arguments.account, async |client| {
        let room = places::room(&client, &arguments.room).await?;
        let me = client.me().await?;
        let participants = client.participants(room).await?;
        let addressing = Addressing { room: &participants, me: me.id, in_text: !arguments.plain };
        let addressed = addressing.address(&said, &arguments.to)?;
        let sent = client.post(room, &addressed.content, &addressed.to).await?;
        let to: Vec<String> = sent.recipients.iter().map(|it| text::harmless(&it.label())).collect();
        if arguments.account.json {
            say_json(&json!({ "id": sent.id, "chat_room_id": room, "recipients": to }))?;
        } else {
            say(&format!(
                "Sent to {}.\n\n  bandstand why {} --room {room}\n\nsays what becomes of it.",
                to.join(", "),
                sent.id
            ));
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn what_is_said(words: &[String]) -> Result<String, Failure> {
    if words != ["-"] {
        return Ok(words.join(" "));
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(TEXT_MAX + 1).read_to_end(&mut bytes).context("cannot read the text")?;
    if read as u64 > TEXT_MAX {
        return Err(Failure::Usage("the text is longer than a mebibyte".into()));
    }
    let said = String::from_utf8(bytes).map_err(|_| Failure::Usage("the text is not UTF-8".into()))?;
    Ok(said.trim_end_matches(['\n', '\r']).to_owned())
}

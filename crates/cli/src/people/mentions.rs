//! `@handle` in what a person types.

use anyhow::bail;
use bandstand_wire::ids::IdentityId;

use super::model::Participant;
use super::places;

/// A message that is ready to be posted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Addressed {
    /// With a token in the place of each `@handle`.
    pub(crate) content: String,
    /// Whom it mentions, each once.
    pub(crate) to: Vec<IdentityId>,
}

/// How a message is addressed.
#[derive(Clone, Copy)]
pub(crate) struct Addressing<'a> {
    /// Who is in the room.
    pub(crate) room: &'a [Participant],
    /// Who sends it.
    pub(crate) me: IdentityId,
    /// Whether `@` in the text is looked at.
    pub(crate) in_text: bool,
}

impl Addressing<'_> {
    /// Resolves whom a message is for: those of `to`, then those in the text. In a room of two it is for the other one
    /// when it names nobody.
    pub(crate) fn address(self, text: &str, to: &[String]) -> anyhow::Result<Addressed> {
        let mut addressed = Addressed { content: String::with_capacity(text.len()), to: Vec::new() };
        for what in to {
            let id = self.one(what)?;
            addressed.add(id);
        }
        let mut rest = text;
        while let Some((before, word, after)) = self.in_text.then(|| next_mention(rest)).flatten() {
            let id = self.one(word)?;
            addressed.content.push_str(before);
            addressed.content.push_str(&format!("@[[{id}]]"));
            addressed.add(id);
            rest = after;
        }
        addressed.content.push_str(rest);
        if addressed.to.is_empty() {
            let others: Vec<&Participant> = self.room.iter().filter(|it| it.id != self.me).collect();
            match others.as_slice() {
                [other] => addressed.add(other.id),
                [] => bail!("nobody else is in this room; `bandstand room add` brings somebody in"),
                several => bail!(
                    "whom is it for? A message reaches those whom it mentions: {}",
                    several.iter().map(|it| it.label()).collect::<Vec<_>>().join(", ")
                ),
            }
        }
        Ok(addressed)
    }

    fn one(self, what: &str) -> anyhow::Result<IdentityId> {
        let Some(found) = places::who(self.room, what)? else {
            let others: Vec<String> = self.room.iter().filter(|it| it.id != self.me).map(Participant::label).collect();
            let hint = if self.in_text { "; --plain sends an @ that is no mention" } else { "" };
            bail!("nobody in this room is called {what}; here are {}{hint}", others.join(", "));
        };
        if found.id == self.me {
            bail!("{what} is yourself; a message goes to others");
        }
        Ok(found.id)
    }
}

impl Addressed {
    fn add(&mut self, id: IdentityId) {
        if !self.to.contains(&id) {
            self.to.push(id);
        }
    }
}

/// The next mention in a text: what is before it, the word with its `@`, and what follows. An `@` within a word, as in an
/// address, is none.
fn next_mention(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(found) = text[from..].find('@') {
        let at = from + found;
        let inside = text[..at].chars().next_back().is_some_and(|it| it.is_alphanumeric() || it == '_');
        let word = mention_word(&text[at + 1..]);
        if !inside && !word.is_empty() {
            let end = at + 1 + word.len();
            return Some((&text[..at], &text[at..end], &text[end..]));
        }
        from = at + 1;
    }
    None
}

/// The handle at the beginning of a text; a full stop at its end belongs to the sentence.
fn mention_word(text: &str) -> &str {
    let end =
        text.find(|it: char| !(it.is_alphanumeric() || matches!(it, '_' | '-' | '/' | '.'))).unwrap_or(text.len());
    text[..end].trim_end_matches(['.', '-', '/'])
}

/// The unfinished mention that a text ends in: where its `@` is, and what was typed of the handle.
pub(crate) fn unfinished(text: &str) -> Option<(usize, &str)> {
    let at = text.rfind('@')?;
    let typed = &text[at + 1..];
    let inside = text[..at].chars().next_back().is_some_and(|it| it.is_alphanumeric() || it == '_');
    let handle = typed.chars().all(|it| it.is_alphanumeric() || matches!(it, '_' | '-' | '/' | '.'));
    (!inside && handle).then_some((at, typed))
}

/// Those whose handle, last part of it, or name begins with what was typed.
pub(crate) fn completions<'a>(room: &'a [Participant], me: IdentityId, typed: &str) -> Vec<&'a Participant> {
    let typed = typed.to_lowercase();
    let fits = |it: &&Participant| {
        let handle = it.folded_handle().unwrap_or_default();
        let last = handle.rsplit('/').next().unwrap_or_default().to_owned();
        it.id != me
            && !handle.is_empty()
            && (handle.starts_with(&typed) || last.starts_with(&typed) || it.name.to_lowercase().starts_with(&typed))
    };
    room.iter().filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use uuid::Uuid;

    fn somebody(id: u128, handle: &str) -> Participant {
        let row = json!({ "id": Uuid::from_u128(id), "type": "Agent", "name": handle, "handle": handle });
        serde_json::from_value(row).unwrap()
    }

    fn id(id: u128) -> IdentityId {
        IdentityId(Uuid::from_u128(id))
    }

    fn address(room: &[Participant], text: &str, to: &[&str]) -> Result<Addressed, String> {
        let to: Vec<String> = to.iter().map(|&it| it.to_owned()).collect();
        Addressing { room, me: id(1), in_text: true }.address(text, &to).map_err(|error| error.to_string())
    }

    fn room() -> [Participant; 4] {
        [somebody(1, "ana"), somebody(2, "ana/writer"), somebody(3, "bob/writer"), somebody(4, "bob/clerk")]
    }

    #[test]
    fn mentions_become_tokens() {
        let sent = address(&room(), "Hi @bob/clerk. And @ana/writer, @clerk: mail ana@example.org", &[]).unwrap();
        let token = |n| format!("@[[{}]]", id(n));
        let want = format!("Hi {}. And {}, {}: mail ana@example.org", token(4), token(2), token(4));
        assert_eq!(sent, Addressed { content: want, to: vec![id(4), id(2)] });
        let to = address(&room(), "hello", &["clerk"]).unwrap();
        assert_eq!(to, Addressed { content: "hello".into(), to: vec![id(4)] });
    }

    #[test]
    fn whoever_cannot_be_told_apart_is_asked_about() {
        assert!(address(&room(), "@writer", &[]).unwrap_err().contains("@ana/writer or @bob/writer"));
        assert!(address(&room(), "@nobody", &[]).unwrap_err().contains("--plain"));
        assert!(address(&room(), "@ana", &[]).unwrap_err().contains("yourself"));
        assert!(address(&room(), "hello", &[]).unwrap_err().contains("whom is it for"));
    }

    #[test]
    fn in_a_room_of_two_it_is_for_the_other() {
        assert_eq!(address(&room()[..2], "hello", &[]).unwrap().to, [id(2)]);
        assert!(address(&room()[..1], "hello", &[]).unwrap_err().contains("nobody else"));
    }

    #[test]
    fn an_unfinished_mention_is_completed() {
        assert_eq!(unfinished("hi @wr"), Some((3, "wr")));
        assert_eq!(unfinished("hi @"), Some((3, "")));
        assert_eq!(unfinished("mail ana@ex"), None);
        assert_eq!(unfinished("hi @writer there"), None);
        let labels = |typed| completions(&room(), id(1), typed).iter().map(|it| it.label()).collect::<Vec<_>>();
        assert_eq!(labels("wr"), ["@ana/writer", "@bob/writer"]);
        assert_eq!(labels("bob/c"), ["@bob/clerk"]);
        assert_eq!(labels("ana"), ["@ana/writer"]);
    }
}

//! Server-sent events: bytes in, events out. Cuts at blank lines and decodes whole lines, so that where the network
//! cut the bytes does not matter.

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// Its `event` field; empty when there is none.
    pub event: String,
    /// Its `data` lines, joined by line breaks.
    pub data: String,
}

impl SseEvent {
    /// An event without a name.
    pub fn data(data: impl Into<String>) -> Self {
        Self { event: String::new(), data: data.into() }
    }

    /// The event as it goes over the wire.
    pub fn to_wire(&self) -> String {
        let mut wire = String::new();
        if !self.event.is_empty() {
            wire.push_str("event: ");
            wire.push_str(&self.event);
            wire.push('\n');
        }
        for line in self.data.split('\n') {
            wire.push_str("data: ");
            wire.push_str(line);
            wire.push('\n');
        }
        wire.push('\n');
        wire
    }
}

/// Takes a stream's bytes in any pieces.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    /// The last byte was a carriage return: a line feed behind it belongs to the same line end.
    after_return: bool,
    started: bool,
}

impl SseParser {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bytes wait for the end of their line or event. The caller bounds it.
    pub fn pending(&self) -> usize {
        self.line.len() + self.event.data.len() + self.event.event.len()
    }

    /// Takes the next bytes; gives the events that are complete with them.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            match rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                None => {
                    self.line.extend_from_slice(rest);
                    break;
                }
                Some(end) => {
                    self.line.extend_from_slice(&rest[..end]);
                    self.after_return = rest[end] == b'\r';
                    rest = &rest[end + 1..];
                    events.extend(self.end_line());
                }
            }
        }
        events
    }

    /// The stream is over: what is left counts as an event, though the standard would drop it. Some servers end so.
    pub fn finish(&mut self) -> Option<SseEvent> {
        let last = if self.line.is_empty() { None } else { self.end_line() };
        last.or_else(|| self.end_event())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.started, true) && line.starts_with(b"\xEF\xBB\xBF") {
            line.drain(..3);
        }
        if line.is_empty() {
            return self.end_event();
        }
        let line = String::from_utf8_lossy(&line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.event.event),
            // Comments (an empty field), `id`, `retry` and whatever else: not for us.
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let mut parser = SseParser::new();
        let mut events: Vec<SseEvent> = pieces.iter().flat_map(|piece| parser.push(piece)).collect();
        events.extend(parser.finish());
        events
    }

    #[test]
    fn line_ends_comments_and_several_data_lines() {
        let text = b"\xEF\xBB\xBF: hello\r\nevent: a\rdata:1\r\ndata: 2\n\n\ndata\n\nid: 3\n\ndata: last";
        let events = all(&[text]);
        assert_eq!(
            events,
            [SseEvent { event: "a".into(), data: "1\n2".into() }, SseEvent::data(""), SseEvent::data("last"),]
        );
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(bytes in proptest::collection::vec(prop_oneof![
            Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), any::<u8>()
        ], 0..200), cuts in proptest::collection::vec(0_usize..200, 0..20)) {
            let mut prefix = b"data: \xE2\x82\xAC\r\n\r\nevent: x\ndata: ".to_vec();
            prefix.extend(bytes);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (prefix.len() + 1)).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut start = 0;
            for cut in cuts {
                pieces.push(&prefix[start..cut]);
                start = cut;
            }
            pieces.push(&prefix[start..]);
            prop_assert_eq!(all(&[&prefix]), all(&pieces));
        }

        #[test]
        fn what_is_written_is_read(event in "[a-z.]{0,8}", data in "[^\r]{0,80}") {
            let written = SseEvent { event, data };
            prop_assert_eq!(all(&[written.to_wire().as_bytes()]), vec![written]);
        }
    }
}

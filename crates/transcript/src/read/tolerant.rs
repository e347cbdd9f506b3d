//! A JSON parser that does not give up.

use serde_json::{Map, Number, Value};

use super::{MAX_DEPTH, ReadFault, Step};

pub(super) struct Read {
    pub(super) values: Vec<Value>,
    pub(super) faults: Vec<ReadFault>,
    pub(super) lone_surrogates: Vec<Vec<Step>>,
}

/// All objects and lists in a text, whatever stands between them.
pub(super) fn values(text: &str) -> Read {
    let mut parser = Parser {
        text,
        bytes: text.as_bytes(),
        at: 0,
        path: Vec::new(),
        faults: Vec::new(),
        lone_surrogates: Vec::new(),
    };
    let mut values = Vec::new();
    while parser.at < parser.bytes.len() {
        match parser.bytes[parser.at] {
            b'{' | b'[' => {
                parser.path.clear();
                if let Some(value) = parser.value(0) {
                    values.push(value);
                }
            }
            byte => {
                if !byte.is_ascii_whitespace() && byte != b',' {
                    parser.fault(ReadFault::OtherText);
                }
                parser.at += 1;
            }
        }
    }
    Read { values, faults: parser.faults, lone_surrogates: parser.lone_surrogates }
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    path: Vec<Step>,
    faults: Vec<ReadFault>,
    lone_surrogates: Vec<Vec<Step>>,
}

impl Parser<'_> {
    fn fault(&mut self, fault: ReadFault) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        self.skip_space();
        match self.peek() {
            None => {
                self.fault(ReadFault::Truncated);
                None
            }
            Some(b'{' | b'[') if depth >= MAX_DEPTH => {
                self.fault(ReadFault::TooDeep);
                self.skip_nested();
                Some(Value::Null)
            }
            Some(b'{') => Some(self.object(depth)),
            Some(b'[') => Some(self.list(depth)),
            Some(quote @ (b'"' | b'\'')) => Some(Value::String(self.string(quote))),
            Some(_) => Some(self.literal()),
        }
    }

    /// Passes over what is nested too deeply, without recursion.
    fn skip_nested(&mut self) {
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'{' | b'[' => open += 1,
                b'}' | b']' => open = open.saturating_sub(1),
                b'"' => {
                    self.string(b'"');
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return;
            }
        }
        self.fault(ReadFault::Truncated);
    }

    fn object(&mut self, depth: usize) -> Value {
        let mut fields = Map::new();
        self.at += 1;
        loop {
            self.skip_space();
            match self.peek() {
                None => {
                    self.fault(ReadFault::Truncated);
                    break;
                }
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                Some(b',') => self.at += 1,
                Some(quote @ (b'"' | b'\'')) => {
                    let key = self.string(quote);
                    self.skip_space();
                    if self.peek() != Some(b':') {
                        self.fault(if self.peek().is_none() { ReadFault::Truncated } else { ReadFault::NotStrict });
                        continue;
                    }
                    self.at += 1;
                    self.path.push(Step::Key(key.clone()));
                    let value = self.value(depth + 1);
                    self.path.pop();
                    if let Some(value) = value {
                        fields.insert(key, value);
                    }
                }
                Some(b']') => {
                    // Closed by the wrong bracket: the list around it is what ends here.
                    self.fault(ReadFault::NotStrict);
                    break;
                }
                Some(_) => {
                    self.fault(ReadFault::NotStrict);
                    self.at += 1;
                }
            }
        }
        Value::Object(fields)
    }

    fn list(&mut self, depth: usize) -> Value {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.skip_space();
            match self.peek() {
                None => {
                    self.fault(ReadFault::Truncated);
                    break;
                }
                Some(b']') => {
                    self.at += 1;
                    break;
                }
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.fault(ReadFault::NotStrict);
                    break;
                }
                Some(_) => {
                    self.path.push(Step::Index(items.len()));
                    items.extend(self.value(depth + 1));
                    self.path.pop();
                }
            }
        }
        Value::Array(items)
    }

    /// A number, a word, or whatever else stands up to the next delimiter.
    fn literal(&mut self) -> Value {
        let start = self.at;
        while let Some(byte) = self.peek() {
            if byte.is_ascii_whitespace() || matches!(byte, b',' | b':' | b'{' | b'}' | b'[' | b']' | b'"') {
                break;
            }
            self.at += 1;
        }
        if self.at == start {
            // A delimiter where a value belongs.
            self.fault(ReadFault::NotStrict);
            self.at += 1;
            return Value::Null;
        }
        let word = &self.text[start..self.at];
        match word {
            "true" => return Value::Bool(true),
            "false" => return Value::Bool(false),
            "null" => return Value::Null,
            _ => {}
        }
        if let Ok(number) = serde_json::from_str::<Number>(word) {
            return Value::Number(number);
        }
        if self.at >= self.bytes.len() {
            self.fault(ReadFault::Truncated);
            return Value::Null;
        }
        self.fault(ReadFault::NotStrict);
        match word {
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            _ => Value::Null,
        }
    }

    fn string(&mut self, quote: u8) -> String {
        if quote != b'"' {
            self.fault(ReadFault::NotStrict);
        }
        let mut text = String::new();
        self.at += 1;
        let mut start = self.at;
        loop {
            match self.peek() {
                None => {
                    text.push_str(&self.text[start..self.at]);
                    self.fault(ReadFault::Truncated);
                    return text;
                }
                Some(byte) if byte == quote => {
                    text.push_str(&self.text[start..self.at]);
                    self.at += 1;
                    return text;
                }
                Some(b'\\') => {
                    text.push_str(&self.text[start..self.at]);
                    self.at += 1;
                    self.escape(&mut text);
                    start = self.at;
                }
                Some(byte) => {
                    if byte < 0x20 {
                        self.fault(ReadFault::NotStrict);
                    }
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self, text: &mut String) {
        let Some(byte) = self.peek() else {
            self.fault(ReadFault::Truncated);
            return;
        };
        self.at += 1;
        text.push(match byte {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'"' | b'\\' | b'/' | b'\'' => char::from(byte),
            b'u' => {
                let unit = self.four_digits();
                self.pair(unit)
            }
            _ => {
                self.fault(ReadFault::NotStrict);
                // The byte may begin a longer character; it is read again as text.
                self.at -= 1;
                '\\'
            }
        });
    }

    /// The character of a UTF-16 unit and, where it takes two, of the one behind it.
    fn pair(&mut self, unit: Option<u32>) -> char {
        let Some(unit) = unit else {
            self.fault(if self.at >= self.bytes.len() { ReadFault::Truncated } else { ReadFault::NotStrict });
            return char::REPLACEMENT_CHARACTER;
        };
        if let Some(character) = char::from_u32(unit) {
            return character;
        }
        if (0xD800..0xDC00).contains(&unit) && self.bytes[self.at..].starts_with(b"\\u") {
            let back = self.at;
            self.at += 2;
            if let Some(low @ 0xDC00..=0xDFFF) = self.four_digits()
                && let Some(character) = char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
            {
                return character;
            }
            self.at = back;
        }
        self.lone_surrogates.push(self.path.clone());
        char::REPLACEMENT_CHARACTER
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.bytes.get(self.at..self.at + 4)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let unit = u32::from_str_radix(&self.text[self.at..self.at + 4], 16).ok()?;
        self.at += 4;
        Some(unit)
    }
}

//! What is on the screen after keys and happenings, without a terminal.

use bandstand_wire::ids::IdentityId;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};
use uuid::Uuid;

use super::screen::{Action, Past, Screen};
use super::view::draw;
use crate::people::feed::Happening;
use crate::people::model::{Participant, Row};

fn id(n: u128) -> String {
    Uuid::from_u128(n).to_string()
}

fn screen() -> Screen {
    let who = |n: u128, kind: &str, handle: &str| -> Participant {
        serde_json::from_value(json!({ "id": id(n), "type": kind, "name": handle, "handle": handle })).unwrap()
    };
    let all = vec![who(1, "User", "ana"), who(2, "Agent", "ana/writer"), who(3, "Agent", "ana/clerk")];
    Screen::new(IdentityId(Uuid::from_u128(1)), "Letters".into(), all)
}

/// A row whose time is none, so that no time zone matters.
fn row(n: u128, sender: u128, kind: &str, content: &str) -> Value {
    let (name, sender_type) = if sender == 1 { ("Ana", "User") } else { ("Writer", "Agent") };
    json!({
        "id": id(n), "content": content, "message_type": kind, "sender_id": id(sender), "sender_type": sender_type,
        "sender_name": name, "metadata": {"mentions": [{"id": id(2), "handle": "ana/writer"}]}, "inserted_at": "10:00:00",
    })
}

fn drawn(screen: &mut Screen, columns: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, height)).unwrap();
    terminal.draw(|frame| draw(frame, screen)).unwrap();
    let text = terminal.backend().to_string();
    let lines = text.lines().map(|line| line.trim_matches('"').trim_end());
    lines.collect::<Vec<_>>().join("\n")
}

fn typed(screen: &mut Screen, text: &str) {
    for character in text.chars() {
        assert!(press(screen, KeyCode::Char(character)).is_empty());
    }
}

fn press(screen: &mut Screen, code: KeyCode) -> Vec<Action> {
    screen.key(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn a_conversation() {
    let mut screen = screen();
    screen.happened(Happening::Row(row(10, 1, "text", &format!("@[[{}]] hello", id(2)))));
    screen.happened(Happening::Row(row(11, 2, "thought", "first\nI think\nthen I write")));
    screen.happened(Happening::Row(row(12, 2, "text", "Good morning.\u{1b}[2J It is a long line that does not fit.")));
    let delivery = json!({ "participant": {"handle": "ana/writer"}, "stage": "picked_up", "verdict": "working",
                           "summary": "@ana/writer works on it." });
    let deliveries = vec![serde_json::from_value(delivery).unwrap()];
    screen.happened(Happening::Delivery { message: id(10).parse().unwrap(), deliveries });
    screen.happened(Happening::Presence(vec![(IdentityId(Uuid::from_u128(3)), true)]));
    let working = json!([{ "agent_id": id(2), "name": "Writer", "activity": {"kind": "tool_call", "name": "search"} }]);
    screen.happened(Happening::Working(serde_json::from_value(working).unwrap()));
    insta::assert_snapshot!("a_conversation", drawn(&mut screen, 74, 14));
    screen.key(KeyEvent::new(KeyCode::Char('o'), KeyModifiers::CONTROL));
    // Narrow: no list of who is there, and events with all their lines.
    insta::assert_snapshot!("narrow_and_unfolded", drawn(&mut screen, 40, 16));
}

#[test]
fn tab_completes_a_mention_and_goes_on_to_the_next() {
    let mut screen = screen();
    typed(&mut screen, "hi @");
    assert!(drawn(&mut screen, 80, 8).contains("Tab: @ana/writer @ana/clerk"));
    press(&mut screen, KeyCode::Tab);
    assert_eq!(screen.input.text(), "hi @ana/writer ");
    press(&mut screen, KeyCode::Tab);
    assert_eq!(screen.input.text(), "hi @ana/clerk ");
    typed(&mut screen, "go");
    press(&mut screen, KeyCode::Tab);
    assert_eq!(press(&mut screen, KeyCode::Enter), [Action::Send("hi @ana/clerk go".into())]);
    assert_eq!(screen.input.text(), "");
    // What was not sent comes back, with the reason.
    screen.not_sent("hi", "no server");
    assert!(drawn(&mut screen, 80, 8).contains("not sent: no server"));
    assert_eq!(screen.input.text(), "hi");
}

#[test]
fn the_line_is_edited_in_its_middle() {
    let mut screen = screen();
    typed(&mut screen, "aéc");
    press(&mut screen, KeyCode::Left);
    press(&mut screen, KeyCode::Backspace);
    typed(&mut screen, "b");
    press(&mut screen, KeyCode::Home);
    press(&mut screen, KeyCode::Delete);
    press(&mut screen, KeyCode::End);
    typed(&mut screen, " de");
    assert_eq!(screen.input.text(), "bc de");
    screen.key(KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL));
    screen.paste("x\ny");
    assert_eq!(screen.input.text(), "bc x y");
}

#[test]
fn paging_back_stays_where_it_is_and_reads_what_was_before() {
    let mut screen = screen();
    let page = |from: u128, to: u128| -> Vec<Row> {
        (from..to).map(|n| serde_json::from_value(row(n, 2, "text", &format!("line {n}"))).unwrap()).collect()
    };
    screen.older(page(20, 30), true);
    assert!(drawn(&mut screen, 60, 11).contains("line 29"));
    assert!(press(&mut screen, KeyCode::PageUp).is_empty());
    let before = drawn(&mut screen, 60, 11);
    assert!(!before.contains("line 29"), "{before}");
    // Something new does not move what is read.
    screen.happened(Happening::Row(row(30, 2, "text", "line 30")));
    assert_eq!(drawn(&mut screen, 60, 11), before);
    let mut asked = Vec::new();
    while asked.is_empty() {
        asked = press(&mut screen, KeyCode::PageUp);
        drawn(&mut screen, 60, 11);
    }
    assert_eq!((asked, screen.past), (vec![Action::Older(id(20).parse().unwrap())], Past::Coming));
    assert!(press(&mut screen, KeyCode::PageUp).is_empty(), "it is asked once");
    screen.older(page(15, 21), false);
    assert_eq!(screen.rows.len(), 16, "a row that is known comes once");
    press(&mut screen, KeyCode::Esc);
    assert!(drawn(&mut screen, 60, 11).contains("line 30"));
}

#[test]
fn a_lost_connection_is_seen_and_what_is_open_is_asked_about_afterwards() {
    let mut screen = screen();
    assert_eq!(screen.happened(Happening::Row(row(10, 1, "text", "hello"))).len(), 1);
    screen.happened(Happening::Lost("the server closed the connection (1012)".into()));
    assert!(drawn(&mut screen, 80, 8).contains("no connection: the server closed"));
    assert_eq!(screen.happened(Happening::Connected), [Action::Ask(id(10).parse().unwrap())]);
    assert!(!drawn(&mut screen, 80, 8).contains("no connection"));
    let quit = screen.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert_eq!(quit, [Action::Quit]);
}

#[test]
fn the_smallest_terminal_is_drawn_as_well() {
    let mut screen = screen();
    screen.happened(Happening::Row(row(10, 2, "text", "hello")));
    typed(&mut screen, "a long text that never fits");
    for (columns, height) in [(1, 1), (5, 3), (12, 4), (200, 60)] {
        drawn(&mut screen, columns, height);
    }
}

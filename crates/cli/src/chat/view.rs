//! Draws the screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};
use unicode_width::UnicodeWidthStr;

use super::screen::{Past, Screen, Seen};
use crate::people::model::{Delivery, Row, Working};
use crate::people::text::{clipped, harmless, one_line, readable, time_of_day, with_local_times, wrapped};

/// Below this width there is no room for who is there.
const WITH_ROSTER: u16 = 72;
const ROSTER: u16 = 28;
/// Columns before a text: the time and two spaces.
const MARGIN: usize = 10;

/// Draws all of it, and notes how much was seen.
pub(super) fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let area = frame.area();
    let [head, middle, hint, input] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1), Constraint::Length(1)])
            .areas(area);
    let (talk, roster) = if area.width >= WITH_ROSTER {
        let [talk, roster] = Layout::horizontal([Constraint::Min(1), Constraint::Length(ROSTER)]).areas(middle);
        (talk, Some(roster))
    } else {
        (middle, None)
    };
    frame.render_widget(heading(screen, usize::from(head.width)), head);
    conversation(frame, screen, talk);
    if let Some(roster) = roster {
        frame.render_widget(members(screen), roster);
    }
    frame.render_widget(Paragraph::new(hints(screen, usize::from(hint.width))), hint);
    prompt(frame, screen, input);
}

fn heading(screen: &Screen, columns: usize) -> Paragraph<'static> {
    let state = match &screen.lost {
        Some(why) => format!("no connection: {}", one_line(why, 60)),
        None => working(&screen.working),
    };
    let title = one_line(&screen.title, columns / 2);
    let text = format!(" {title}{}{state}", if state.is_empty() { "" } else { " · " });
    Paragraph::new(clipped(&text, columns)).style(Style::new().add_modifier(Modifier::REVERSED))
}

fn working(all: &[Working]) -> String {
    let what = |it: &Working| {
        let name = one_line(&it.name, 20);
        match &it.activity {
            Some(activity) => {
                let kind = activity.kind.replace('_', " ");
                let tool = activity.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
                format!("{name} works ({}{})", harmless(&kind), harmless(&tool))
            }
            None => format!("{name} works"),
        }
    };
    all.iter().map(what).collect::<Vec<_>>().join(", ")
}

fn conversation(frame: &mut Frame<'_>, screen: &mut Screen, area: Rect) {
    let columns = usize::from(area.width.saturating_sub(1)).max(MARGIN + 1);
    let height = usize::from(area.height);
    screen.seen.columns = columns;
    let mut lines: Vec<Line<'static>> = match screen.past {
        Past::More => vec![Line::from("  ↑ PgUp reads what was before").dim()],
        Past::Coming => vec![Line::from("  ↑ reading …").dim()],
        Past::None => Vec::new(),
    };
    for row in &screen.rows {
        lines.extend(row_lines(screen, row, columns));
    }
    let top = lines.len().saturating_sub(height);
    screen.up = screen.up.min(top);
    screen.seen = Seen { columns, height, lines: lines.len() };
    let from = top - screen.up;
    let shown: Vec<_> = lines.into_iter().skip(from).take(height).collect();
    frame.render_widget(Paragraph::new(shown), area);
}

/// How many lines a row takes.
pub(super) fn height_of(screen: &Screen, row: &Row) -> usize {
    row_lines(screen, row, screen.seen.columns.max(MARGIN + 1)).len()
}

fn row_lines(screen: &Screen, row: &Row, columns: usize) -> Vec<Line<'static>> {
    let time = time_of_day(&row.inserted_at);
    let name = one_line(row.sender_name.as_deref().unwrap_or("somebody"), 24);
    let (text, width) = (readable(row), columns - MARGIN);
    if !row.is_text() {
        return event_lines(screen, row, &name, &text, width);
    }
    let own = row.sender_id == screen.me;
    let colour = match (own, row.sender_type.as_str()) {
        (true, _) => Color::Cyan,
        (false, "Agent") => Color::Green,
        _ => Color::Yellow,
    };
    let mut lines = vec![Line::from(vec![
        Span::raw(format!("{time:<8}")).dim(),
        Span::raw("  "),
        Span::raw(name).fg(colour).bold(),
    ])];
    let body = wrapped(&text, width).into_iter();
    lines.extend(body.map(|line| Line::from(format!("{:MARGIN$}{line}", ""))));
    if own {
        for delivery in screen.deliveries.get(&row.id).into_iter().flatten() {
            lines.push(delivery_line(delivery, width));
        }
    }
    lines
}

/// An event: one line, or all of them.
fn event_lines(screen: &Screen, row: &Row, name: &str, text: &str, width: usize) -> Vec<Line<'static>> {
    let begin = format!("· {name} {}: ", harmless(&row.message_type.replace('_', " ")));
    if !screen.unfolded {
        let line = clipped(&format!("{begin}{}", one_line(text, width)), width);
        return vec![Line::from(format!("{:MARGIN$}{line}", "")).dim()];
    }
    let all = wrapped(&format!("{begin}{text}"), width).into_iter();
    all.map(|line| Line::from(format!("{:MARGIN$}{line}", "")).dim()).collect()
}

/// What became of an own message, for one recipient.
fn delivery_line(delivery: &Delivery, width: usize) -> Line<'static> {
    let (mark, colour) = match delivery.verdict.as_str() {
        "done" => ("✓", Color::Green),
        "working" => ("…", Color::Blue),
        "failed" | "ended" => ("✗", Color::Red),
        _ => ("·", Color::Yellow),
    };
    let text = one_line(&with_local_times(&delivery.summary), width.saturating_sub(2));
    Line::from(format!("{:MARGIN$}{mark} {text}", "")).fg(colour)
}

fn members(screen: &Screen) -> Paragraph<'static> {
    let width = usize::from(ROSTER) - 4;
    let lines: Vec<Line<'static>> = screen
        .participants
        .iter()
        .map(|who| {
            let works = screen.working.iter().any(|it| it.agent_id == who.id);
            let mark = match (works, who.online) {
                (true, _) => Span::raw("▶ ").fg(Color::Blue),
                (false, Some(true)) => Span::raw("● ").fg(Color::Green),
                (false, _) => Span::raw("○ ").dim(),
            };
            Line::from(vec![mark, Span::raw(one_line(&who.label(), width))])
        })
        .collect();
    Paragraph::new(lines).block(Block::new().borders(Borders::LEFT))
}

fn hints(screen: &Screen, columns: usize) -> Line<'static> {
    if let Some(notice) = &screen.notice {
        return Line::from(format!(" {}", one_line(notice, columns.saturating_sub(1)))).fg(Color::Red);
    }
    let candidates = screen.input.hints(&screen.participants, screen.me);
    if !candidates.is_empty() {
        return Line::from(format!(" Tab: {}", one_line(&candidates.join(" "), columns.saturating_sub(6)))).bold();
    }
    let more = if screen.up > 0 { "Esc: newest · " } else { "" };
    let fold = if screen.unfolded { "fold" } else { "unfold" };
    Line::from(clipped(
        &format!(" {more}Enter: send · @ and Tab: mention · PgUp: back · Ctrl-O: {fold} events · Ctrl-C: leave"),
        columns,
    ))
    .dim()
}

/// The line that is typed; a long one is shown around the cursor.
fn prompt(frame: &mut Frame<'_>, screen: &Screen, area: Rect) {
    let columns = usize::from(area.width).saturating_sub(3).max(1);
    let before = screen.input.before_cursor();
    let mut from = 0;
    while before[from..].width() >= columns {
        from += before[from..].chars().next().map_or(1, char::len_utf8);
    }
    let text = harmless(&screen.input.text()[from..]);
    frame.render_widget(Paragraph::new(format!("> {text}")), area);
    let column = u16::try_from(2 + before[from..].width()).unwrap_or(u16::MAX);
    frame.set_cursor_position(Position::new(area.x.saturating_add(column).min(area.right()), area.y));
}

//! A trace of `bandstand run --trace`: between which two stages of a step the meaning changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use bandstand_agent::trace::{ABOUT, REPLY_STREAM, Stage};
use bandstand_transcript::diff::{Difference, Weight, diff, diff_in};
use bandstand_transcript::stream::StreamReader;
use bandstand_transcript::{
    EncodeOptions, Format, Message, MidSystem, Part, Profile, Role, ToolInput, ToolName, Transcript, decode_history,
    decode_reply, room as rows,
};
use serde_json::{Value, json};

use super::diff::{counts, told};
use super::paint::Paint;
use crate::cli::DiffArguments;
use crate::output::{Failure, say, say_json};
use crate::people::text::harmless;

/// Stages that say the same, if nothing goes wrong: what is compared with what.
const PAIRS: [(Stage, Stage); 5] = [
    (Stage::ClientHistory, Stage::Normalised),
    (Stage::Normalised, Stage::Payload),
    (Stage::Reply, Stage::Parsed),
    (Stage::Parsed, Stage::ReplayedPayload),
    (Stage::Parsed, Stage::Output),
];

/// What of two stages of a step differs.
struct Compared {
    from: Stage,
    to: Stage,
    /// Without what is only written in another way.
    differences: Vec<Difference>,
    /// Why they could not be compared.
    problem: Option<String>,
    same: bool,
}

/// A step, compared with itself.
struct Step {
    name: String,
    compared: Vec<Compared>,
}

/// Says of each step below a folder, or of the one that it is, between which stages the meaning changed.
pub(super) fn diff_folder(arguments: &DiffArguments) -> Result<ExitCode, Failure> {
    let folder = &arguments.first;
    let found = found(folder).with_context(|| format!("{} cannot be read", folder.display()));
    let found = found.map_err(|why| Failure::Usage(format!("{why:#}")))?;
    if found.is_empty() {
        let what = format!("{} holds no step of a trace (bandstand run --trace)", folder.display());
        return Err(Failure::Usage(what));
    }
    let mut steps = Vec::new();
    for path in found {
        let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        let name = if name.is_empty() { folder.display().to_string() } else { name };
        let compared = compared(&path, arguments.strict);
        let compared = compared.map_err(|why| Failure::Usage(format!("step {name}: {why:#}")))?;
        steps.push(Step { name, compared });
    }
    let same = steps.iter().all(|step| step.compared.iter().all(|pair| pair.same));
    if arguments.json {
        say_json(&json!({ "same": same, "steps": steps.iter().map(step_json).collect::<Vec<_>>() }))?;
    } else {
        say(&words(&steps, &Paint::for_output(arguments.color)));
    }
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn step_json(step: &Step) -> Value {
    let compared = step.compared.iter().map(|pair| {
        json!({
            "from": pair.from.name(), "to": pair.to.name(), "same": pair.same, "problem": pair.problem,
            "differences": pair.differences,
        })
    });
    json!({ "step": step.name, "stages": compared.collect::<Vec<_>>() })
}

fn words(steps: &[Step], paint: &Paint) -> String {
    let mut lines = Vec::new();
    let mut alike = 0;
    for step in steps {
        if step.compared.iter().all(|pair| pair.differences.is_empty() && pair.problem.is_none()) {
            alike += 1;
            continue;
        }
        lines.push(harmless(&step.name));
        for pair in &step.compared {
            let stages = format!("{} → {}", pair.from, pair.to);
            match &pair.problem {
                Some(problem) => lines.push(format!("{stages}: {}", paint.error(&harmless(problem)))),
                None if pair.differences.is_empty() => {}
                None => lines.push(told(&pair.differences, pair.same, &stages, paint)),
            }
        }
    }
    let counted = |number| if number == 1 { "1 step".to_owned() } else { format!("{number} steps") };
    lines.push(format!("{}; in {} all stages say the same.", counted(steps.len()), counted(alike)));
    lines.join("\n")
}

/// The folders of steps at or below a folder, in order: room, turn, step.
fn found(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if folder.join(Stage::ClientHistory.file()).is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let mut steps = Vec::new();
    let mut level = vec![folder.to_owned()];
    // A room in a trace is three levels above its stages.
    for _ in 0..3 {
        let mut below = Vec::new();
        for folder in level {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    below.push(entry.path());
                }
            }
        }
        steps.extend(below.iter().filter(|path| path.join(Stage::ClientHistory.file()).is_file()).cloned());
        level = below;
    }
    steps.sort();
    Ok(steps)
}

/// What the payloads of a step are written in.
struct About {
    format: Format,
    options: EncodeOptions,
    status: Option<u64>,
    whole: Value,
}

impl About {
    fn of(step: &Path) -> anyhow::Result<Option<Self>> {
        let Some(whole) = read(step, ABOUT)? else { return Ok(None) };
        let text = |key: &str| whole[key].as_str().unwrap_or_default();
        let format = Format::from_name(text("api")).with_context(|| format!("{ABOUT}: unknown api"))?;
        let profile = Profile::named(text("profile")).unwrap_or_else(Profile::none);
        let mid_system = match text("mid_system") {
            "native" => MidSystem::Native,
            "user" => MidSystem::User,
            _ => MidSystem::Hoist,
        };
        let reasoning_model = whole["reasoning_model"] == true;
        let options = EncodeOptions { mid_system, reasoning_model, ..EncodeOptions::for_profile(profile) };
        Ok(Some(Self { format, options, status: whole["status"].as_u64(), whole }))
    }

    /// Gives tools their names of the registry back.
    fn renamed(&self, transcript: Transcript, names: &str) -> Transcript {
        let pairs: Vec<(&str, &str)> = self.whole[names]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|pair| Some((pair[0].as_str()?, pair[1].as_str()?)))
            .collect();
        let real = |wire: &ToolName| {
            let pair = pairs.iter().find(|(_, known)| *known == wire.as_str());
            pair.map_or_else(|| wire.clone(), |(name, _)| ToolName::new(*name))
        };
        let mut transcript = transcript;
        for part in transcript.messages.iter_mut().flat_map(|message| &mut message.parts) {
            if let Part::ToolCall(call) = part {
                call.name = real(&call.name);
            }
        }
        transcript
    }
}

impl About {
    /// Gives the arguments of calls their own keys back.
    fn with_arguments(&self, mut transcript: Transcript) -> Transcript {
        let keys: Vec<[&str; 3]> = self.whole["arguments"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|key| Some([key[0].as_str()?, key[1].as_str()?, key[2].as_str()?]))
            .collect();
        for part in transcript.messages.iter_mut().flat_map(|message| &mut message.parts) {
            let Part::ToolCall(call) = part else { continue };
            let ToolInput::Object { fields, text } = &mut call.input else { continue };
            for [_, wire, key] in keys.iter().filter(|[tool, ..]| *tool == call.name.as_str()) {
                if let Some(value) = fields.shift_remove(*wire) {
                    fields.insert((*key).to_owned(), value);
                    *text = None;
                }
            }
        }
        transcript
    }
}

fn read(step: &Path, file: &str) -> anyhow::Result<Option<Value>> {
    match fs::read(step.join(file)) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).with_context(|| format!("{file} is no JSON"))?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(anyhow!(error)).with_context(|| format!("{file} cannot be read")),
    }
}

/// The stages of a step that are there, as conversations.
struct Stages<'a> {
    step: &'a Path,
    about: Option<About>,
}

impl Stages<'_> {
    fn load(&self, stage: Stage) -> anyhow::Result<Option<Transcript>> {
        if stage == Stage::Reply {
            return self.reply();
        }
        let Some(value) = read(self.step, stage.file())? else { return Ok(None) };
        let canonical = |value: &Value| {
            Transcript::from_canonical(value).with_context(|| format!("{} is no transcript", stage.file()))
        };
        let payload = |names: &str| -> anyhow::Result<Transcript> {
            let about = self.about.as_ref().with_context(|| format!("{ABOUT} is missing"))?;
            let decoded =
                decode_history(&value, about.format).with_context(|| format!("{} cannot be read", stage.file()))?;
            Ok(about.renamed(decoded.transcript, names))
        };
        Ok(Some(match stage {
            Stage::ClientHistory => {
                let said = rows::decode_rows(
                    value["rows"].as_array().map_or(&[], Vec::as_slice),
                    value["me"].as_str().unwrap_or_default(),
                );
                let mut all = said.transcript;
                for message in canonical(&value["transcript"])?.messages {
                    all.push(message);
                }
                all
            }
            Stage::Normalised => canonical(&value)?,
            Stage::Payload => payload("names")?,
            Stage::ReplayedPayload => payload("replayed_names")?,
            Stage::Parsed | Stage::Output => canonical(&value["transcript"])?,
            Stage::Reply => return Ok(None),
        }))
    }

    /// What the provider said, read anew. A refusal says nothing of a conversation.
    fn reply(&self) -> anyhow::Result<Option<Transcript>> {
        let Some(about) = &self.about else { return Ok(None) };
        if about.status.is_some_and(|status| status >= 400) {
            return Ok(None);
        }
        let streamed = self.step.join(REPLY_STREAM);
        let reply = if streamed.is_file() {
            let bytes = fs::read(&streamed).with_context(|| format!("{REPLY_STREAM} cannot be read"))?;
            let mut reader = StreamReader::new(about.format);
            reader.push(&bytes);
            let assembled = reader.finish();
            if let Some(error) = assembled.error {
                return Err(anyhow!("{REPLY_STREAM}: {error}"));
            }
            assembled.reply
        } else {
            let Some(value) = read(self.step, Stage::Reply.file())? else { return Ok(None) };
            decode_reply(&value, about.format).with_context(|| Stage::Reply.file())?
        };
        Ok(Some(about.with_arguments(about.renamed(reply.into_transcript(), "names"))))
    }
}

fn compared(step: &Path, strict: bool) -> anyhow::Result<Vec<Compared>> {
    let stages = Stages { step, about: About::of(step)? };
    Ok(PAIRS.into_iter().filter_map(|(from, to)| compare(&stages, from, to, strict)).collect())
}

/// Nothing when a stage is not there: the step did not get so far.
fn compare(stages: &Stages<'_>, from: Stage, to: Stage, strict: bool) -> Option<Compared> {
    let both = || -> anyhow::Result<Option<Vec<Difference>>> {
        let (Some(mut first), Some(mut second)) = (stages.load(from)?, stages.load(to)?) else { return Ok(None) };
        if from != Stage::Reply {
            // Why the turn before ended: some stages know it, and others have no place for it.
            (first.stop_reason, second.stop_reason) = (None, None);
        }
        Ok(Some(match (from, to) {
            (Stage::ClientHistory, _) => diff(&without(first, is_system), &without(second, is_system)),
            (Stage::Normalised, _) => in_format(stages, &first, &second),
            (_, Stage::ReplayedPayload) => match replayed(stages, first, &second)? {
                Some(found) => found,
                None => return Ok(None),
            },
            (_, Stage::Output) => shown(stages, first, second)?,
            _ => diff(&first, &second),
        }))
    };
    let (differences, problem) = match both() {
        Ok(None) => return None,
        Ok(Some(differences)) => (differences, None),
        Err(why) => (Vec::new(), Some(format!("{why:#}"))),
    };
    let differences: Vec<Difference> =
        differences.into_iter().filter(|difference| difference.weight != Weight::Form).collect();
    let same = problem.is_none() && !differences.iter().any(|difference| counts(difference, strict));
    Some(Compared { from, to, differences, problem, same })
}

fn in_format(stages: &Stages<'_>, first: &Transcript, second: &Transcript) -> Vec<Difference> {
    match &stages.about {
        Some(about) => diff_in(first, second, about.format, &about.options),
        None => diff(first, second),
    }
}

/// The payload in which a reply went back, against what it should hold: all that was there, the reply and its results.
/// What differed in the payload before is not told again. Nothing where the results are not known.
fn replayed(stages: &Stages<'_>, parsed: Transcript, second: &Transcript) -> anyhow::Result<Option<Vec<Difference>>> {
    let mut whole = stages.load(Stage::Normalised)?.unwrap_or_default();
    whole.stop_reason = None;
    for message in parsed.messages {
        whole.push(message);
    }
    let Some(output) = stages.load(Stage::Output)? else { return Ok(None) };
    for message in output.messages.into_iter().filter(|message| message.role == Role::Tool) {
        whole.push(message);
    }
    let mut found = in_format(stages, &whole, second);
    if let (Some(first), Some(sent)) = (stages.load(Stage::Normalised)?, stages.load(Stage::Payload)?) {
        let known = in_format(stages, &first, &sent);
        let same = |one: &Difference, other: &Difference| {
            (one.code, &one.id, &one.before, &one.after) == (other.code, &other.id, &other.before, &other.after)
        };
        found.retain(|difference| !known.iter().any(|known| same(known, difference)));
    }
    Ok(Some(found))
}

/// What was understood, against what came of it: every call with its result, and the closing text with the room, unless
/// the turn had answered already. Reasoning, and words beside calls, are not shown.
fn shown(stages: &Stages<'_>, parsed: Transcript, output: Transcript) -> anyhow::Result<Vec<Difference>> {
    let value = read(stages.step, Stage::Output.file())?.unwrap_or_default();
    let calls = parsed.messages.iter().any(|message| message.calls().next().is_some());
    let silent = calls || value["withheld"].is_string() || value["failure"].is_string();
    let parsed = without(parsed, |part, _| match part {
        Part::Reasoning(_) | Part::Foreign(_) => true,
        Part::Text(_) | Part::Refusal(_) => silent,
        _ => false,
    });
    let mut answered = parsed;
    answered.stop_reason = None;
    // A refusal is posted as words.
    for part in answered.messages.iter_mut().flat_map(|message| &mut message.parts) {
        if let Part::Refusal(refusal) = part {
            *part = Part::Text(bandstand_transcript::model::TextPart::new(refusal.text.clone()));
        }
    }
    let open = output.open_calls().into_iter().map(|call| call.id.clone()).collect::<Vec<_>>();
    let spoken = without(output, |part, _| matches!(part, Part::ToolResult(_)));
    // A call without a result is one that came to nothing.
    let spoken = without(spoken, |part, _| matches!(part, Part::ToolCall(call) if open.contains(&call.id)));
    Ok(diff(&answered, &spoken))
}

fn is_system(_part: &Part, message: &Message) -> bool {
    message.role == Role::System
}

/// What is left when parts of a kind, and messages that have no others, are taken away.
fn without(transcript: Transcript, gone: impl Fn(&Part, &Message) -> bool) -> Transcript {
    let mut left = Transcript { messages: Vec::new(), stop_reason: transcript.stop_reason };
    for message in transcript.messages {
        let parts = message.parts.iter().filter(|part| !gone(part, &message)).cloned().collect();
        left.push(Message { parts, ..message });
    }
    left
}

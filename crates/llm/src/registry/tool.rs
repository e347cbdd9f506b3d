//! One tool: what is known of it, and what it does.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::arguments::{self, Check};
use super::{Effect, InputSchema, InvalidArguments, InvalidSchema, ToolError, ToolInput, UnknownWord};

/// Whether a call may simply be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// Yes.
    #[default]
    Allow,
    /// Only when an authorised person in the room says so.
    Ask,
    /// No: the tool is known but refused.
    Deny,
}

impl FromStr for Approval {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "allow" => Ok(Self::Allow),
            "ask" => Ok(Self::Ask),
            "deny" => Ok(Self::Deny),
            _ => Err(UnknownWord { word: word.into(), expected: "allow, ask, deny" }),
        }
    }
}

/// What is known of a tool, without the tool.
#[derive(Clone)]
pub struct Spec {
    name: Cow<'static, str>,
    description: String,
    schema: Arc<InputSchema>,
    effect: Option<Effect>,
    approval: Approval,
    group: Cow<'static, str>,
    read_only: bool,
    time_limit: Option<Duration>,
}

impl Spec {
    /// The name that models call it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What models read of it.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// What it takes.
    pub fn schema(&self) -> &InputSchema {
        &self.schema
    }

    /// What a successful call does to the turn.
    pub fn effect(&self) -> Effect {
        self.effect.unwrap_or_default()
    }

    /// Whether its author said what it does to the turn. If not, it counts as [`Effect::Observe`].
    pub fn declares_effect(&self) -> bool {
        self.effect.is_some()
    }

    /// Whether a call may simply be made.
    pub fn approval(&self) -> Approval {
        self.approval
    }

    /// The group that filters know it by: `chat`, `contacts`, …; `custom` unless it says otherwise.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Whether it changes nothing anywhere.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// How long one call may take; without one, as long as the turn.
    pub fn time_limit(&self) -> Option<Duration> {
        self.time_limit
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec")
            .field("name", &self.name)
            .field("effect", &self.effect)
            .field("approval", &self.approval)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

/// What runs when a tool is called: with the context of the call and arguments that were checked.
pub type Handler<C> =
    Arc<dyn Fn(C, Value) -> Result<BoxFuture<'static, Result<Value, ToolError>>, InvalidArguments> + Send + Sync>;

/// A tool. `C` is what its handler is given besides the arguments: the room that it is called in, for example.
pub struct Tool<C> {
    spec: Spec,
    aliases: Vec<(&'static str, &'static str)>,
    check: Option<Check>,
    platform: bool,
    handler: Handler<C>,
}

impl<C> Clone for Tool<C> {
    fn clone(&self) -> Self {
        Self {
            spec: self.spec.clone(),
            aliases: self.aliases.clone(),
            check: self.check,
            platform: self.platform,
            handler: Arc::clone(&self.handler),
        }
    }
}

impl<C> fmt::Debug for Tool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}

impl<C: Send + 'static> Tool<C> {
    /// A tool from a function and the type of its input, whose documentation becomes the tool's description.
    ///
    /// It counts as [`Effect::Observe`], in the group `custom`, and may be called without asking.
    pub fn new<I, O, F, Fut>(name: impl Into<Cow<'static, str>>, handler: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + 'static,
        F: Fn(C, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        let (name, schema) = (name.into(), InputSchema::of::<I>());
        let run: Handler<C> = Arc::new(move |context: C, arguments: Value| {
            let input: I = arguments::read(arguments)?;
            let work = handler(context, input);
            let work = async move {
                let output = work.await?;
                serde_json::to_value(output)
                    .map_err(|error| ToolError::failed(format!("the result is no JSON: {error}")))
            };
            Ok(work.boxed())
        });
        Self::with(name, schema, run)
    }

    /// A tool whose schema is known only when the program runs, such as one of an external MCP server. The handler is
    /// given the arguments as they are, once they fit the schema.
    ///
    /// # Errors
    /// [`InvalidSchema`] when the schema is none, or is not one of an object.
    pub fn dynamic<F, Fut>(
        name: impl Into<Cow<'static, str>>,
        description: impl Into<String>,
        schema: Value,
        handler: F,
    ) -> Result<Self, InvalidSchema>
    where
        F: Fn(C, Map<String, Value>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let schema = InputSchema::from_value(schema)?;
        let run: Handler<C> =
            Arc::new(move |context: C, arguments: Value| Ok(handler(context, arguments::read(arguments)?).boxed()));
        Ok(Self::with(name.into(), schema, run).description(description))
    }

    fn with(name: Cow<'static, str>, schema: InputSchema, handler: Handler<C>) -> Self {
        let description = schema.description().unwrap_or_default().to_owned();
        let spec = Spec {
            name,
            description,
            schema: Arc::new(schema),
            effect: None,
            approval: Approval::default(),
            group: Cow::Borrowed("custom"),
            read_only: false,
            time_limit: None,
        };
        Self { spec, aliases: Vec::new(), check: None, platform: false, handler }
    }

    /// What models read of it, instead of the documentation of its input.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.spec.description = description.into();
        self
    }

    /// What a successful call does to the turn.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.spec.effect = Some(effect);
        self
    }

    /// Whether a call may simply be made.
    #[must_use]
    pub fn approval(mut self, approval: Approval) -> Self {
        self.spec.approval = approval;
        self
    }

    /// The group that filters know it by.
    #[must_use]
    pub fn group(mut self, group: impl Into<Cow<'static, str>>) -> Self {
        self.spec.group = group.into();
        self
    }

    /// It changes nothing anywhere.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.spec.read_only = true;
        self
    }

    /// How long one call may take. Afterwards its work is dropped and the model is told.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.spec.time_limit = Some(limit);
        self
    }

    /// Another name of an argument that is understood but not advertised.
    #[must_use]
    pub fn alias(mut self, alias: &'static str, argument: &'static str) -> Self {
        self.aliases.push((alias, argument));
        self
    }

    /// It belongs to the platform, whose tools write faults in arguments a little differently.
    #[must_use]
    pub fn platform(mut self) -> Self {
        self.platform = true;
        self
    }

    /// Rules of the input that no schema can say. See [`ToolInput`].
    #[must_use]
    pub fn checked<I: ToolInput + DeserializeOwned>(mut self) -> Self {
        self.check = Some(arguments::check::<I>);
        self
    }

    /// What is known of it.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Checks the arguments and starts the work. Approval, time limit and effect are up to the caller; see
    /// [`super::Registry::call`] for all of it together.
    ///
    /// # Errors
    /// Every fault in the arguments, together.
    pub fn start(
        &self,
        context: C,
        arguments: Value,
    ) -> Result<BoxFuture<'static, Result<Value, ToolError>>, InvalidArguments> {
        let arguments = self.validate(arguments)?;
        (self.handler)(context, arguments).map_err(|faults| faults.of(self.spec.name(), self.platform))
    }

    /// Checks arguments and brings them into the shape that the handler takes, without calling it.
    ///
    /// # Errors
    /// Every fault in them, together.
    pub fn validate(&self, mut arguments: Value) -> Result<Value, InvalidArguments> {
        if let Value::Object(map) = &mut arguments {
            for (alias, argument) in &self.aliases {
                if !map.contains_key(*argument)
                    && let Some(value) = map.remove(*alias)
                {
                    map.insert((*argument).to_owned(), value);
                }
            }
        }
        let named = |faults: InvalidArguments| faults.of(self.spec.name(), self.platform);
        let arguments = self.spec.schema.validate(arguments).map_err(named)?;
        if let Some(check) = self.check {
            check(&arguments).map_err(named)?;
        }
        Ok(arguments)
    }
}

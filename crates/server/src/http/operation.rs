//! One operation: what serves it, and what the API document says of it, in one place. The router and the document are both
//! made of these, so neither can have one that the other lacks.

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::http::parameter::{Parameter, idempotency_key};
use crate::state::AppState;

/// Who may call an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Whoever reaches the server.
    Anybody,
    /// The key of an agent.
    Agent,
    /// The key or token of a user.
    User,
    /// The key of a user, and no token.
    UserKey,
    /// The key of a user who is an administrator; nobody else learns that it is there.
    Administrator,
}

/// Something that has an id; where a reply holds one, the document links to what can be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noun {
    Agent,
    BulkDeletion,
    ContactRequest,
    Execution,
    File,
    Identity,
    Memory,
    Message,
    Room,
    Task,
}

impl Noun {
    /// What an id in a path names: the segment before it says so.
    pub(crate) fn of_segment(segment: &str) -> Option<Self> {
        Some(match segment {
            "agents" => Self::Agent,
            "bulk-deletions" => Self::BulkDeletion,
            "requests" => Self::ContactRequest,
            "executions" => Self::Execution,
            "files" => Self::File,
            "participants" => Self::Identity,
            "memories" => Self::Memory,
            "messages" => Self::Message,
            "chats" => Self::Room,
            "tasks" => Self::Task,
            _ => return None,
        })
    }
}

/// The schema of a type, once a generator is there to collect what it refers to.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What a request's or reply's body holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    /// JSON of a type.
    Json(SchemaOf),
    /// Bytes of a media type.
    Bytes(&'static str),
    /// Nothing.
    None,
}

/// A status that an operation answers with when it does what it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    /// The status.
    pub(crate) status: u16,
    /// What the body holds.
    pub(crate) content: Content,
}

/// A request's body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestBody {
    /// What it holds.
    pub(crate) content: Content,
    /// Whether it may be left out.
    pub(crate) required: bool,
}

/// An operation.
pub(crate) struct Operation {
    /// In upper case.
    pub(crate) method: &'static str,
    /// With its parameters in braces.
    pub(crate) path: &'static str,
    /// Unique; what generated clients call it.
    pub(crate) id: &'static str,
    /// One line.
    pub(crate) summary: &'static str,
    /// What the line does not say.
    pub(crate) description: &'static str,
    /// The group that it is shown in.
    pub(crate) tag: &'static str,
    /// Who may call it.
    pub(crate) access: Access,
    /// Parameters of query and headers; those of the path are in the path, unless they are not UUIDs.
    pub(crate) parameters: Vec<Parameter>,
    /// What it takes.
    pub(crate) body: Option<RequestBody>,
    /// What it answers with.
    pub(crate) replies: Vec<Reply>,
    /// The statuses of its refusals, beside those that every operation of its kind has.
    pub(crate) errors: &'static [u16],
    /// Where in its replies an id is, and of what.
    pub(crate) yields: Vec<(Noun, &'static str)>,
    /// What serves it.
    pub(crate) route: MethodRouter<AppState>,
}

/// Operations of one group.
pub(crate) fn group(tag: &'static str, access: Access, operations: Vec<Operation>) -> Vec<Operation> {
    operations.into_iter().map(|operation| Operation { tag, access, ..operation }).collect()
}

fn operation<H, T>(
    (method, filter): (&'static str, MethodFilter),
    path: &'static str,
    id: &'static str,
    handler: H,
) -> Operation
where
    H: Handler<T, AppState>,
    T: 'static,
{
    Operation {
        method,
        path,
        id,
        summary: "",
        description: "",
        tag: "",
        access: Access::Anybody,
        parameters: Vec::new(),
        body: None,
        replies: Vec::new(),
        errors: &[],
        yields: Vec::new(),
        route: on(filter, handler),
    }
}

macro_rules! methods {
    ($($name:ident: $word:literal, $filter:ident;)+) => {$(
        /// An operation of this method: its path, its id, and the handler that serves it.
        pub(crate) fn $name<H, T>(path: &'static str, id: &'static str, handler: H) -> Operation
        where
            H: Handler<T, AppState>,
            T: 'static,
        {
            operation(($word, MethodFilter::$filter), path, id, handler)
        }
    )+};
}

methods! {
    get: "GET", GET;
    post: "POST", POST;
    put: "PUT", PUT;
    patch: "PATCH", PATCH;
    delete: "DELETE", DELETE;
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl Operation {
    /// What it is for, in one line.
    pub(crate) fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// What the summary does not say.
    pub(crate) fn description(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// Takes these parameters, too.
    pub(crate) fn with(mut self, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        self.parameters.extend(parameters);
        self
    }

    /// Happens once for each idempotency key: its handler takes a [`crate::http::idempotency::Once`].
    pub(crate) fn once(self) -> Self {
        self.with([idempotency_key()])
    }

    /// Takes JSON of this type.
    pub(crate) fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Some(RequestBody { content: Content::Json(schema_of::<T>), required: true }), ..self }
    }

    /// Takes JSON of this type, or no body at all.
    pub(crate) fn may_take<T: JsonSchema>(self) -> Self {
        Self { body: Some(RequestBody { content: Content::Json(schema_of::<T>), required: false }), ..self }
    }

    /// Takes any bytes.
    pub(crate) fn takes_bytes(self) -> Self {
        Self { body: Some(RequestBody { content: Content::Bytes("*/*"), required: true }), ..self }
    }

    /// Answers JSON of this type under a status.
    pub(crate) fn replies<T: JsonSchema>(mut self, status: u16) -> Self {
        self.replies.push(Reply { status, content: Content::Json(schema_of::<T>) });
        self
    }

    /// Answers bytes of a media type under a status.
    pub(crate) fn replies_bytes(mut self, status: u16, media_type: &'static str) -> Self {
        self.replies.push(Reply { status, content: Content::Bytes(media_type) });
        self
    }

    /// May answer 204.
    pub(crate) fn replies_nothing(mut self) -> Self {
        self.replies.push(Reply { status: 204, content: Content::None });
        self
    }

    /// Refuses with these statuses, beside those that every operation of its kind has.
    pub(crate) fn errors(self, errors: &'static [u16]) -> Self {
        Self { errors, ..self }
    }

    /// Its successful replies hold an id at this JSON Pointer.
    pub(crate) fn yields(mut self, noun: Noun, pointer: &'static str) -> Self {
        self.yields.push((noun, pointer));
        self
    }

    /// The names of the parameters in its path, each with what it names.
    pub(crate) fn path_parameters(&self) -> Vec<(&'static str, Option<Noun>)> {
        let mut before = "";
        let mut found = Vec::new();
        for segment in self.path.split('/') {
            if let Some(name) = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                found.push((name, Noun::of_segment(before)));
            }
            before = segment;
        }
        found
    }
}

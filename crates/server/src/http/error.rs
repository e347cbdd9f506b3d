//! The one place where an error becomes an HTTP reply: its status, and the contract's envelope with the request's id.

use axum::response::{IntoResponse, Response};
use bandstand_domain::contact::AnswerError;
use bandstand_domain::mention::MentionError;
use bandstand_domain::room::RoomStatus;
use bandstand_store::StoreError;
use bandstand_store::quotas::LimitReached;
use bandstand_wire::error::{ErrorBody, ErrorEnvelope};
use hyper::StatusCode;
use hyper::header::{HeaderValue, RETRY_AFTER};
use serde_json::{Map, Value};

use crate::service::admin::AdminError;
use crate::service::agents::{DeleteAgentError, RegisterError};
use crate::service::contacts::ContactError;
use crate::service::control::ControlError;
use crate::service::dead_letters::RedeliverError;
use crate::service::files::FileError;
use crate::service::lists::ReadError;
use crate::service::marks::{MarkError, NextError};
use crate::service::memories::MemoryError;
use crate::service::messages::PostError;
use crate::service::participants::ParticipantError;
use crate::service::rooms::RoomError;
use crate::service::tasks::TaskError;

/// A refused or failed request.
#[derive(Clone, Debug)]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    /// Boxed: an error travels through many a `Result`, and nearly none has details.
    details: Option<Box<Map<String, Value>>>,
    retry_after: Option<u64>,
    /// What is logged and never told to the client.
    cause: Option<String>,
}

/// What is said of everything that the caller may not know of.
const NOT_FOUND: &str = "not found";

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), details: None, retry_after: None, cause: None }
    }

    /// 400: the request cannot be read at all.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// 400 for one place, which the contract says is this and not 422.
    pub fn bad_request_at(place: &str, what: impl Into<String>) -> Self {
        let what = what.into();
        let message = format!("{place} {what}");
        let details = [(place.to_owned(), Value::Array(vec![Value::String(what)]))].into_iter().collect();
        Self { details: Some(Box::new(details)), ..Self::bad_request(message) }
    }

    /// 401: no key, or one that opens nothing.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "missing or invalid API key")
    }

    /// 403.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// 404: nothing there, or nothing that the caller may know of.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", NOT_FOUND)
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path does not take that method")
    }

    /// 409. Clients retry it by themselves; asking them to wait just a second shortens that.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self { retry_after: Some(1), ..Self::new(StatusCode::CONFLICT, "conflict", message) }
    }

    /// 413.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("the request body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", message)
    }

    /// 416.
    pub fn range_not_satisfiable(length: u64) -> Self {
        let message = format!("the range starts beyond the file's {length} bytes");
        Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", message)
    }

    /// 415.
    pub fn unsupported_media_type() -> Self {
        let message = "the request body must be JSON, with the header content-type: application/json";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    /// 429: `what` may be asked again after so many whole seconds.
    pub fn rate_limited(what: &str, wait: u64) -> Self {
        let message = format!("too many {what}; wait {wait} s and try again");
        Self { retry_after: Some(wait), ..Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message) }
    }

    /// With details beyond the message.
    #[must_use]
    pub fn with_details(self, details: Map<String, Value>) -> Self {
        Self { details: Some(Box::new(details)), ..self }
    }

    /// 422 with a code that clients match.
    pub fn unprocessable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
    }

    /// 422 that names each faulty place: a JSON Pointer, or a bare field name, to what is wrong there.
    pub fn invalid(details: Map<String, Value>) -> Self {
        let message = match details.iter().next() {
            Some((place, Value::Array(texts))) => {
                format!("{place} {}", texts.first().and_then(Value::as_str).unwrap_or("is invalid"))
            }
            _ => "the request is invalid".to_owned(),
        };
        Self { details: Some(Box::new(details)), ..Self::unprocessable("validation_error", message) }
    }

    /// 422 for one place.
    pub fn invalid_at(place: &str, what: impl Into<String>) -> Self {
        Self::invalid([(place.to_owned(), Value::Array(vec![Value::String(what.into())]))].into_iter().collect())
    }

    /// 500: the cause goes to the log, the client learns the request's id.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        let message = "internal error; the request id tells the operator more";
        let bare = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message);
        Self { cause: Some(cause.to_string()), ..bare }
    }

    /// 503: nothing was done; the same request may succeed later.
    pub fn unavailable(cause: impl std::fmt::Display) -> Self {
        let bare = Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "temporarily unavailable; try again");
        Self { cause: Some(cause.to_string()), retry_after: Some(1), ..bare }
    }

    fn limit_reached(resource: &'static str, limit: i64, current: i64) -> Self {
        metrics::counter!("quota_refusals_total", "resource" => resource).increment(1);
        let details = [("resource", Value::from(resource)), ("limit", limit.into()), ("current", current.into())];
        let details = details.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let message = format!("the limit of {limit} {resource} is reached");
        Self { details: Some(Box::new(details)), ..Self::new(StatusCode::FORBIDDEN, "limit_reached", message) }
    }

    fn archived(status: RoomStatus) -> Self {
        Self::forbidden(format!("the room is {}: it can be read but not written to", status.as_str()))
    }

    /// The status that it is answered with.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The code that it is answered with.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What the log says beyond the reply.
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// The reply, for the request of this id.
    pub fn into_reply(self, request_id: &str) -> Response {
        let envelope = ErrorEnvelope {
            error: ErrorBody {
                code: self.code.to_owned(),
                message: self.message,
                request_id: Some(request_id.to_owned()),
                details: self.details.map(|details| *details),
                retry_after: None,
            },
        };
        let mut response = super::reply::json(self.status, &envelope);
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The error travels as an extension to the middleware, which knows the request's id and writes the body.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            // Seen only by who reused a key that was forgotten in this moment; the next try finds it free.
            StoreError::Repeated => Self::conflict(error.to_string()),
            error if error.is_unavailable() => Self::unavailable(error),
            error => Self::internal(error),
        }
    }
}

impl From<LimitReached> for ApiError {
    fn from(reached: LimitReached) -> Self {
        Self::limit_reached(reached.resource.as_str(), reached.limit, reached.current)
    }
}

impl From<PostError> for ApiError {
    fn from(error: PostError) -> Self {
        match error {
            PostError::RoomNotFound => Self::not_found(),
            PostError::NotActive(status) => Self::archived(status),
            PostError::Stopped => Self::forbidden(error.to_string()),
            PostError::Content(what) => Self::invalid_at("/message/content", what),
            PostError::Mention(why) => Self::mention(&why),
            PostError::UnknownAttachment => Self::unprocessable("unknown_attachment", error.to_string()),
            PostError::Resolves => Self::invalid_at("/event/metadata/resolves", error.to_string()),
            PostError::Quota(reached) => reached.into(),
            PostError::UnknownTask => Self::invalid_at("/event/metadata/task_id", error.to_string()),
            PostError::Store(cause) => cause.into(),
        }
    }
}

impl ApiError {
    fn mention(why: &MentionError) -> Self {
        Self::unprocessable(why.code(), why.to_string())
    }
}

impl From<MarkError> for ApiError {
    fn from(error: MarkError) -> Self {
        match error {
            MarkError::RoomNotFound | MarkError::MessageNotFound => Self::not_found(),
            // The handler answers 204 to it, as clients expect of a mark; nothing else marks.
            MarkError::Stopped => Self::forbidden(error.to_string()),
            MarkError::DeadLettered => Self::invalid_at("/processing_attempt", error.to_string()),
            MarkError::NoAttempt(why) => Self::invalid_at("/processing_attempt", why.to_string()),
            MarkError::Store(cause) => cause.into(),
        }
    }
}

impl From<RedeliverError> for ApiError {
    fn from(error: RedeliverError) -> Self {
        match error {
            RedeliverError::RoomNotFound | RedeliverError::MessageNotFound => Self::not_found(),
            RedeliverError::NotActive(status) => Self::archived(status),
            RedeliverError::NotAllowed => Self::forbidden(error.to_string()),
            RedeliverError::NotDead | RedeliverError::NotThere => Self::invalid_at("/agent_id", error.to_string()),
            RedeliverError::Store(cause) => cause.into(),
        }
    }
}

impl From<NextError> for ApiError {
    fn from(error: NextError) -> Self {
        match error {
            NextError::RoomNotFound => Self::not_found(),
            NextError::Store(cause) => cause.into(),
        }
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::RoomNotFound | ReadError::MessageNotFound => Self::not_found(),
            ReadError::Store(cause) => cause.into(),
        }
    }
}

impl From<FileError> for ApiError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::RoomNotFound | FileError::NotFound => Self::not_found(),
            FileError::NotActive(status) => Self::archived(status),
            FileError::TooLarge(limit) => Self::too_large(usize::try_from(limit).unwrap_or(usize::MAX)),
            FileError::HashMismatch => Self::invalid_at("/x-file-sha256", error.to_string()),
            FileError::TypeNotTaken(_) => Self::invalid_at("/content_type", error.to_string()),
            FileError::Interrupted => Self::bad_request(error.to_string()),
            FileError::Unavailable(cause) => Self::unavailable(cause),
            FileError::Store(cause) => cause.into(),
        }
    }
}

impl From<TaskError> for ApiError {
    fn from(error: TaskError) -> Self {
        match error {
            TaskError::RoomNotFound | TaskError::TaskNotFound => Self::not_found(),
            TaskError::NotActive(status) => Self::archived(status),
            TaskError::NothingToSupersede => Self::invalid_at("/supersedes_id", error.to_string()),
            TaskError::Refused(why) => Self::invalid_at(&format!("/{}", why.field()), why.to_string()),
            TaskError::Store(cause) => cause.into(),
        }
    }
}

impl From<RoomError> for ApiError {
    fn from(error: RoomError) -> Self {
        match error {
            RoomError::NotFound => Self::not_found(),
            RoomError::NotOwner => Self::forbidden(error.to_string()),
            RoomError::NotActive(status) => Self::archived(status),
            RoomError::Quota(reached) => reached.into(),
            RoomError::Store(cause) => cause.into(),
        }
    }
}

impl From<ControlError> for ApiError {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::NotFound => Self::not_found(),
            ControlError::NotOwner => Self::forbidden(error.to_string()),
            ControlError::Store(cause) => cause.into(),
        }
    }
}

impl From<ParticipantError> for ApiError {
    fn from(error: ParticipantError) -> Self {
        use bandstand_domain::membership::MembershipError;
        match error {
            ParticipantError::RoomNotFound | ParticipantError::NotFound => Self::not_found(),
            ParticipantError::AlreadyIn => Self::conflict(error.to_string()),
            ParticipantError::NotActive(status) => Self::archived(status),
            ParticipantError::Full { limit, current } => Self::limit_reached("participants", limit, current),
            ParticipantError::Membership(why @ MembershipError::SoleOwner) => {
                Self::new(StatusCode::FORBIDDEN, "cannot_remove_sole_owner", why.to_string())
            }
            ParticipantError::Membership(
                why @ (MembershipError::RoleNotGrantable(_)
                | MembershipError::NotAPeer
                | MembershipError::RoleTooLow
                | MembershipError::AgentRemovesUser),
            ) => Self::forbidden(why.to_string()),
            ParticipantError::Store(cause) => cause.into(),
        }
    }
}

impl From<ContactError> for ApiError {
    fn from(error: ContactError) -> Self {
        match error {
            ContactError::NotFound => Self::not_found(),
            ContactError::Ask(why) => Self::conflict(why.to_string()),
            ContactError::Answer(why @ AnswerError::WrongSide(_)) => Self::forbidden(why.to_string()),
            ContactError::Answer(why @ AnswerError::Resolved(_)) => Self::conflict(why.to_string()),
            ContactError::Store(cause) => cause.into(),
        }
    }
}

impl From<MemoryError> for ApiError {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::NotFound => Self::not_found(),
            MemoryError::NotSource | MemoryError::NotYours => Self::forbidden(error.to_string()),
            MemoryError::NotArchived => Self::invalid_at("status", error.to_string()),
            // band-sdk matches the code, and rewrites the error for its model.
            MemoryError::NoOrganization => Self {
                code: "org_scope_requires_organization",
                message: error.to_string(),
                ..Self::invalid_at("organization_id", error.to_string())
            },
            MemoryError::NoCaller => Self::unauthorized(),
            MemoryError::Store(cause) => cause.into(),
        }
    }
}

impl From<RegisterError> for ApiError {
    fn from(error: RegisterError) -> Self {
        match error {
            // The bare field name is what the platform sends, and what band-sdk's provisioning reads.
            RegisterError::NameTaken => Self::invalid_at("name", error.to_string()),
            RegisterError::NoOwner => Self::unauthorized(),
            RegisterError::Randomness(why) => Self::internal(why),
            RegisterError::Quota(reached) => reached.into(),
            RegisterError::Store(cause) => cause.into(),
        }
    }
}

impl From<DeleteAgentError> for ApiError {
    fn from(error: DeleteAgentError) -> Self {
        match error {
            DeleteAgentError::NotFound => Self::not_found(),
            DeleteAgentError::HasHistory => Self::unprocessable("execution_history_exists", error.to_string()),
            DeleteAgentError::Store(cause) => cause.into(),
        }
    }
}

impl From<AdminError> for ApiError {
    fn from(error: AdminError) -> Self {
        let text = error.to_string();
        match error {
            AdminError::Quota(reached) => reached.into(),
            AdminError::NotFound { .. } | AdminError::NotInOrganization { .. } => Self::not_found(),
            AdminError::Handle { .. } | AdminError::HandleTaken(_) => Self::invalid_at("handle", text),
            AdminError::Name(_) | AdminError::NameTaken { .. } | AdminError::OrganizationTaken(_) => {
                Self::invalid_at("name", text)
            }
            AdminError::Description(_) => Self::invalid_at("description", text),
            AdminError::Account { what, .. } => Self::invalid_at(what, text),
            AdminError::AccountTaken { .. } => Self::conflict(text),
            AdminError::SigningKey => Self::internal(text),
            AdminError::HasOrganization { .. } => Self::unprocessable("has_organization", text),
            AdminError::HasHistory(_) => Self::unprocessable("execution_history_exists", text),
            AdminError::HasAgents(_) => Self::unprocessable("agents_exist", text),
            AdminError::LastAdministrator(_) => Self::unprocessable("last_administrator", text),
            AdminError::NoOwner => Self::unprocessable("no_owner", text),
            AdminError::Randomness(why) => Self::internal(why),
            AdminError::Store(cause) => cause.into(),
        }
    }
}

//! Every route, in one table.

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, patch, post};

use crate::http::{ApiError, agent, human, middleware, system};
use crate::socket;
use crate::state::AppState;

/// The whole public surface over a running server's parts.
pub fn router(app: AppState) -> Router {
    let agent_api = Router::new()
        .route("/me", get(agent::me::show))
        .route("/peers", get(agent::peers::list))
        .route("/chats", get(agent::rooms::list).post(agent::rooms::create))
        .route("/chats/{chat_id}", get(agent::rooms::show).patch(agent::rooms::rename))
        .route("/chats/{chat_id}/participants", get(agent::participants::list).post(agent::participants::add))
        .route("/chats/{chat_id}/participants/{id}", delete(agent::participants::remove))
        .route("/chats/{chat_id}/messages", get(agent::messages::list).post(agent::messages::post))
        .route("/chats/{chat_id}/messages/next", get(agent::messages::next))
        .route("/chats/{chat_id}/messages/{id}/processing", post(agent::messages::processing))
        .route("/chats/{chat_id}/messages/{id}/processed", post(agent::messages::processed))
        .route("/chats/{chat_id}/messages/{id}/failed", post(agent::messages::failed))
        .route("/chats/{chat_id}/events", post(agent::events::post))
        .route("/chats/{chat_id}/context", get(agent::context::list))
        .route("/chats/{chat_id}/activity", post(agent::activity::report));
    let human_api = Router::new()
        .route("/profile", get(human::profile::show).put(human::profile::update))
        .route("/agents", get(human::agents::list))
        .route("/agents/register", post(human::agents::register))
        .route("/agents/{id}", delete(human::agents::delete))
        .route("/peers", get(human::peers::list))
        .route("/chats", get(human::rooms::list).post(human::rooms::create))
        .route("/chats/{id}", get(human::rooms::show))
        .route("/chats/{id}", patch(human::rooms::rename).delete(human::rooms::delete))
        .route("/chats/{id}/archive", post(human::rooms::archive))
        .route("/chats/{id}/unarchive", post(human::rooms::unarchive))
        .route("/chats/{chat_id}/participants", get(human::participants::list).post(human::participants::add))
        .route("/chats/{chat_id}/participants/{id}", delete(human::participants::remove))
        .route("/chats/{chat_id}/messages", get(human::messages::list).post(human::messages::post));
    Router::new()
        .nest("/api/v1/agent", agent_api)
        .nest("/api/v1/me", human_api)
        .route("/api/version", get(system::version))
        .route("/api/v1/test", get(system::test))
        .merge(socket::upgrade::routes())
        .fallback(|| async { ApiError::not_found() })
        .method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
        .layer(from_fn_with_state(app.clone(), middleware::around))
        .with_state(app)
}

//! The router: every operation of the table, and the socket.

use axum::Router;
use axum::middleware::from_fn_with_state;

use crate::http::{ApiError, middleware, operations};
use crate::socket;
use crate::state::AppState;

/// The whole public surface over a running server's parts.
pub fn router(app: AppState) -> Router {
    operations::all()
        .into_iter()
        .fold(Router::new(), |router, operation| router.route(operation.path, operation.route))
        .merge(socket::upgrade::routes())
        .fallback(|| async { ApiError::not_found() })
        .method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
        .layer(from_fn_with_state(app.clone(), middleware::around))
        .with_state(app)
}

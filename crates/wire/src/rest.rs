//! The JSON of both REST APIs: what replies hold. Requests are read by hand in the server, because every fault in one
//! must be named with its place.

pub mod bulk_deletion;
pub mod contact;
pub mod control;
pub mod dead_letter;
pub mod delivery;
pub mod identity;
pub mod memory;
pub mod message;
pub mod participant;
pub mod request;
pub mod room;
pub mod task;
pub mod words;

use schemars::JsonSchema;
use serde::Serialize;

/// `{"data": …}`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Data<T> {
    /// The thing itself.
    pub data: T,
}

/// `{"data": …, "metadata": …}`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Page<T, M> {
    /// The rows.
    pub data: Vec<T>,
    /// Where they stand among all.
    pub metadata: M,
}

/// A page whose metadata also stands under its older name `meta`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct PageWithMeta<T, M> {
    /// The rows.
    pub data: Vec<T>,
    /// Where they stand among all.
    pub metadata: M,
    /// The same again, for older clients.
    pub meta: M,
}

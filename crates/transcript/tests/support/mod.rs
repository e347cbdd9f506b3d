//! What the tests share.

pub(crate) mod cases;
pub(crate) mod compare;

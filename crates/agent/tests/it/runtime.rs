//! An agent's life against the real server, on good lines and on bad ones.

mod faults;
mod lives;
mod support;

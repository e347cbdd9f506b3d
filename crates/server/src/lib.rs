//! Bandstand's server: the HTTP APIs, the Phoenix socket, the bus and the background jobs.

pub mod admin;
pub mod auth;
pub mod backup;
pub mod health;
pub mod http;
pub mod rates;
pub mod render;
pub mod secret;
pub mod serve;
pub mod service;
pub mod settings;
pub mod sign_in;
pub mod signs;
pub mod socket;
pub mod start;
pub mod state;
pub mod system;
pub mod telemetry;
pub mod tls;

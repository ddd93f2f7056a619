//! Scratch.
pub mod cookie_secret;
pub mod establishment;

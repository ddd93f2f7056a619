//! watching

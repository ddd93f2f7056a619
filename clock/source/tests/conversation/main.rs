//! The conversation with a virtual server, in virtual time.

mod any_calls;
mod dialogues;
mod interleaving;
mod script;

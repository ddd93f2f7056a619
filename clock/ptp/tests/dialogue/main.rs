//! Scripted dialogues with virtual and with real masters and followers, in virtual time.

mod any_calls;
mod captured;
mod following;
mod grandmaster;
mod hostile;
mod script;
mod unacceptable;
mod unicast;

//! What both daemons have in common: how a configuration file is read, the values that options of a daemon have, the
//! small servers for control and metrics, and the text of metrics.
//!
//! Nothing here knows what a daemon does. A daemon brings its options (`ffclock_units::options!`) and answers of its
//! own ([`Answering`]).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod config;
mod control_socket;
mod exposition;
mod http;
mod listener;
mod ptp;
mod values;

pub use config::{
    ConfigError, ConfigText, Described, LONGEST_TEXT, MOST_PROBLEMS, Problem, ShowOptions, Value, excerpt, read_bounded,
};
pub use control_socket::ControlSocket;
pub use exposition::Exposition;
#[doc(hidden)]
pub use ffclock_units::OptionValue;
pub use listener::{Accept, Answering, Listener, Rights, Service};
pub use ptp::{DeviceName, DeviceStamps, MessageInterval};
pub use toml::de::{DeTable, DeValue};
pub use values::{FilePath, LoopbackAddress, Switchable, Unrecognised};

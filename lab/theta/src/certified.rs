//! Bounds that hold: what clocks with known bounds allow Omega to be.
//!
//! Between hosts a delay is known as well as the two clocks are. The unknowns are not the errors of all the stamps but
//! one correction a host, that changes slowly: `true time = clock + correction`. The clocks promise how large it may
//! be; each message says that it did not arrive before it was sent, which orders the corrections of its two hosts;
//! drift ties one epoch to the next. All of these are differences, so shortest paths give the tightest bounds on every
//! pair ([`Corrections`]). If no corrections satisfy them, a clock lied. Derived for this project; docs/theta.md has
//! the proofs.

mod closure;
mod corrections;
pub(crate) mod gather;
mod omega;
mod ratios;
mod taps;

pub use corrections::{Corrections, Lie};
pub use omega::{Certified, OmegaBounds};
pub use taps::{TapCheck, TapPassage, check_by_taps};

use crate::analysis::{AnalysisError, SwitchStamping, ThetaMode, TimeRange};
use crate::log::LogReader;
use crate::record::{ClockSample, Event, RunDescription};
use gather::JoinedLog;

/// How to certify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertifyOptions {
    /// Where switches are stamped.
    pub stamping: SwitchStamping,
    /// Whether Theta is bounded too.
    pub theta: ThetaMode,
    /// How long the corrections of an epoch are taken for constant, up to drift; picoseconds.
    pub epoch_ps: u64,
    /// Which switches count, by the clock of their host. All messages do: those from before are in transit, and bound
    /// the clocks.
    pub range: TimeRange,
}

impl Default for CertifyOptions {
    fn default() -> Self {
        CertifyOptions {
            stamping: SwitchStamping::AfterBroadcast,
            theta: ThetaMode::Omit,
            epoch_ps: 1_000_000_000_000,
            range: TimeRange::ALL,
        }
    }
}

/// Why no bounds can be given.
#[derive(Debug, thiserror::Error)]
pub enum CertifyError {
    /// The log cannot be analysed.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// No corrections within the promised bounds put every perception after its broadcast.
    #[error("{0}")]
    Lied(Lie),
    /// What the taps saw has nothing to do with the log.
    #[error("the taps saw none of the log's messages: their captures are of another run, or of other links")]
    NothingSeen,
    /// The log does not fit into memory at once, which certifying needs.
    #[error("more than {0} messages: certify a shorter log")]
    TooLong(usize),
}

/// Bounds on Omega for a log on disk.
///
/// # Errors
/// [`CertifyError`]; a clock that lied is one.
pub fn certify(log: &LogReader, options: &CertifyOptions) -> Result<Certified, CertifyError> {
    let gathered = JoinedLog::from_log(log, options.stamping)?;
    certified(&gathered, log.run(), log.clocks(), options)
}

/// Bounds on Omega for events in memory, those of each process in their order.
///
/// # Errors
/// As [`certify`].
pub fn certify_events(
    run: &RunDescription,
    clocks: &[ClockSample],
    events: &[Event],
    options: &CertifyOptions,
) -> Result<Certified, CertifyError> {
    let gathered = JoinedLog::from_events(run, clocks, events, options.stamping)?;
    certified(&gathered, run, clocks, options)
}

/// Whether corrections of the clocks exist that keep every bound and put no perception before its broadcast. For
/// events in memory, those of each process in their order.
///
/// # Errors
/// As [`certify`]; a clock that lied is one.
pub fn check_clocks(
    run: &RunDescription,
    clocks: &[ClockSample],
    events: impl Iterator<Item = Event>,
) -> Result<(), CertifyError> {
    let options = CertifyOptions::default();
    let events: Vec<Event> = events.collect();
    let gathered = JoinedLog::from_events(run, clocks, &events, options.stamping)?;
    Corrections::new(run, clocks, &gathered.crossings, options.epoch_ps).map(drop).map_err(CertifyError::Lied)
}

fn certified(
    gathered: &JoinedLog,
    run: &RunDescription,
    clocks: &[ClockSample],
    options: &CertifyOptions,
) -> Result<Certified, CertifyError> {
    let corrections =
        Corrections::new(run, clocks, &gathered.crossings, options.epoch_ps).map_err(CertifyError::Lied)?;
    Ok(Certified::new(gathered, &corrections, options))
}

//! The calibration that holds for a link.

use crate::config::{DaemonConfig, HostAsymmetry, StampChoice};
use ffclock_control::calibration::{Calibration, CalibrationError, Subject, Taken};
use ffclock_sys::StampShifts;
use ffclock_units::{Period, StampShift};
use std::net::IpAddr;

/// The measured delays of this host, if they are wanted.
#[derive(Debug)]
pub(crate) struct Calibrator {
    measured: Option<Result<Calibration, String>>,
    stamps: StampChoice,
    period: Period,
}

impl Calibrator {
    /// Reads the file, if it is wanted; `period` is that of the counter.
    pub(crate) fn new(config: &DaemonConfig, period: Period) -> Self {
        let is_wanted = config.asymmetry == HostAsymmetry::Calibrated;
        let path = config.calibration.as_path();
        let read = || Calibration::read(path).map_err(|error| format!("{}: {error}", path.display()));
        Calibrator { measured: is_wanted.then(read), stamps: config.stamps, period }
    }

    /// The moves of stamps of packets that leave from the address `local`; none if a calibration is not wanted.
    ///
    /// # Errors
    /// A calibration is wanted, and there is none for the configured stamps.
    pub(crate) fn shifts(&self, local: Option<IpAddr>) -> Result<StampShifts, String> {
        let Some(measured) = &self.measured else { return Ok(StampShifts::default()) };
        let calibration = measured.as_ref().map_err(Clone::clone)?;
        let device = local.and_then(ffclock_sys::device_with).ok_or("the device of the packets cannot be found out")?;
        let subject = Subject::here(&device);
        let shift = |taken| {
            calibration.shift(&subject, taken, self.period).map_err(|error: CalibrationError| error.to_string())
        };
        match self.stamps {
            // These stamps are taken at the boundary itself: there is nothing to move.
            StampChoice::Trace | StampChoice::Module => {
                Ok(StampShifts { user: shift(Taken::User).unwrap_or_default(), kernel: StampShift::default() })
            }
            StampChoice::Kernel => {
                Ok(StampShifts { user: shift(Taken::User).unwrap_or_default(), kernel: shift(Taken::Kernel)? })
            }
            // Those of the card need none, and those of the kernel stand in for them.
            StampChoice::Hardware => Ok(StampShifts {
                user: shift(Taken::User).unwrap_or_default(),
                kernel: shift(Taken::Kernel).unwrap_or_default(),
            }),
            StampChoice::User => Ok(StampShifts { user: shift(Taken::User)?, kernel: StampShift::default() }),
        }
    }
}

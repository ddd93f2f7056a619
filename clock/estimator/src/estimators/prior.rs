//! What no exchange shows of a server's time, and what is assumed of it instead: the systematic part of the standard
//! uncertainty, by evaluation of Type B (GUM, JCGM 100:2008, 4.3).

use crate::bank::measurement::MICRO;
use crate::tuning::ensemble::{ASYMMETRY_PART, CLAIM_PART, LEAST_SYSTEMATIC};
use ffclock_units::StandardUncertainty;

/// What is assumed of the time that a server shows.
#[derive(Clone, Copy, Debug)]
pub struct ServerPrior {
    pub asymmetry: AsymmetryPrior,
    /// The server's claim of its own largest error, s.
    pub claim: f64,
}

/// What is assumed of the asymmetry of a path, beside the one that is stated.
#[derive(Clone, Copy, Debug)]
pub enum AsymmetryPrior {
    /// Its standard deviation as a part of the round trip.
    PartOfTrip(f64),
    /// Half of how far the stated asymmetry can be off, s.
    HalfError(f64),
}

impl ServerPrior {
    /// That of a server which has not answered yet.
    pub const NEW: ServerPrior = ServerPrior { asymmetry: AsymmetryPrior::PartOfTrip(ASYMMETRY_PART), claim: 0.0 };

    /// The variance of the server's time by its path and its claim, us^2. `floor` is the smallest round trip, s.
    pub fn variance(&self, floor: f64) -> f64 {
        let path = match self.asymmetry {
            AsymmetryPrior::PartOfTrip(part) => part * 0.5 * floor / MICRO,
            AsymmetryPrior::HalfError(error) => CLAIM_PART * error / MICRO,
        };
        let claim = CLAIM_PART * self.claim / MICRO;
        path * path + claim * claim + LEAST_SYSTEMATIC
    }

    /// The same as a standard deviation, s.
    pub fn deviation(&self, floor: f64) -> f64 {
        libm::sqrt(self.variance(floor)) * MICRO
    }
}

/// The combined standard uncertainty (GUM, 5.1.2): the noise and the systematic part are independent. All in s.
pub fn combined(noise: f64, systematic: f64) -> StandardUncertainty {
    debug_assert!(!(noise < 0.0 || systematic < 0.0), "neither has a sign");
    // A root may be rounded below its larger part.
    StandardUncertainty::from_seconds(libm::hypot(noise, systematic).max(noise))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_counts_by_its_length_or_by_the_stated_error() {
        let prior = ServerPrior { asymmetry: AsymmetryPrior::PartOfTrip(0.1), claim: 0.0 };
        assert!((prior.deviation(0.010) - 500e-6).abs() < 1e-10, "a tenth of half of 10 ms");
        let stated = ServerPrior { asymmetry: AsymmetryPrior::HalfError(30e-6), ..prior };
        assert!((stated.deviation(0.010) - 30e-6 / 3.0_f64.sqrt()).abs() < 1e-9, "a rectangular distribution");
        assert_eq!(stated.variance(0.010), stated.variance(0.001));
        let claims = ServerPrior { claim: 40e-6, ..stated };
        assert!((claims.deviation(0.0) - 50e-6 / 3.0_f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn the_combined_uncertainty_is_never_less_than_the_noise() {
        assert!((combined(3e-6, 4e-6).as_seconds() - 5e-6).abs() < 1e-15);
        for noise in [1e-9, 0.3, 1e3] {
            assert!(combined(noise, 1e-7) >= StandardUncertainty::from_seconds(noise), "{noise}");
        }
        assert_eq!(combined(f64::NAN, 1e-7), StandardUncertainty::UNKNOWN);
    }
}

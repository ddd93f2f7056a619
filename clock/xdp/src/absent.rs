//! What stands for the fast path where this program was built without it.

use crate::{FastCounts, FastPathError, FastPathPlace, Line, Rules, XdpHook};
use std::net::IpAddr;

/// Stands for the fast path; it has no value, which only this crate can see: to others it is one that may fail.
#[derive(Debug)]
pub struct NoFastPath(NoValue);

#[derive(Debug)]
enum NoValue {}

impl NoFastPath {
    /// Says why there is none.
    ///
    /// # Errors
    /// Always [`FastPathError::NotBuilt`].
    pub fn open(_: &FastPathPlace) -> Result<Self, FastPathError> {
        Err(FastPathError::NotBuilt)
    }

    /// Never called.
    pub fn hook(&self) -> XdpHook {
        match self.0 {}
    }

    /// Never called.
    pub fn serve(&mut self, _: &[IpAddr]) -> Result<(), FastPathError> {
        match self.0 {}
    }

    /// Never called.
    pub fn rule(&mut self, _: &Rules) -> Result<(), FastPathError> {
        match self.0 {}
    }

    /// Never called.
    pub fn publish(&mut self, _: &Line) -> Result<(), FastPathError> {
        match self.0 {}
    }

    /// Never called.
    pub fn withdraw(&mut self) -> Result<(), FastPathError> {
        match self.0 {}
    }

    /// Never called.
    pub fn counts(&self) -> Result<FastCounts, FastPathError> {
        match self.0 {}
    }
}

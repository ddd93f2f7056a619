//! A host between the server and a contestant: it follows the server with a clock and an oscillator of its own, and
//! serves its own time on.

use super::contestant::{Post, peer, written};
use super::network;
use crate::failure::Failure;

/// What runs on that host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relay {
    /// ffclockd, and ffclock-serve that reads its page; both with their defaults.
    Ffclock,
    /// The same, and ffclock-serve is a grandmaster of PTP, too.
    FfclockGrandmaster,
    /// chronyd as shipped, which serves what it follows.
    Chronyd,
}

/// Its oscillator is not that of its client: the seeds of the two differ by this.
pub(super) const OWN_SEED: u64 = 1 << 31;

/// The server ($0) with its configuration ($1), and beside it the daemon ($2) with its own ($3), which ends with it.
const SERVED: &str = "setpriv --pdeathsig KILL \"$2\" --config \"$3\" & exec \"$0\" --config \"$1\"";

/// The configuration of what serves, and that of the daemon beside it.
const FILES: [&str; 2] = ["configuration", "daemon"];

impl Relay {
    /// The name of its directory within that of the contestant.
    pub(super) const DIRECTORY: &str = "relay";

    /// Writes its configuration and gives the command. It serves on the link of this number.
    pub(super) fn prepare(self, post: &Post<'_>, link: usize) -> Result<Vec<String>, Failure> {
        self.configure(post, link)?;
        let [configuration, daemon] = FILES.map(|name| post.directory.join(name).display().to_string());
        match self {
            Relay::Ffclock | Relay::FfclockGrandmaster => {
                let [program, beside] = [crate::demo::sibling("ffclock-serve")?, crate::demo::sibling("ffclockd")?];
                let words = ["sh", "-c", SERVED].map(str::to_owned);
                Ok(words.into_iter().chain([program, configuration, beside, daemon]).collect())
            }
            Relay::Chronyd => {
                let options = ["-d", "-u", "root", "-f"].map(str::to_owned);
                Ok([peer(post.peers, "chronyd")?].into_iter().chain(options).chain([configuration]).collect())
            }
        }
    }

    /// Writes what its programs read at their start.
    pub(super) fn configure(self, post: &Post<'_>, link: usize) -> Result<(), Failure> {
        let (address, device) = (network::server_address(link), network::server_end(link));
        let of = |name: &str, template: &str| {
            written(post, name, &template.replace("{address}", &address).replace("{device}", &device))
        };
        let [configuration, daemon] = FILES;
        match self {
            Relay::Ffclock | Relay::FfclockGrandmaster => {
                of(daemon, &include_str!("configurations/ffclockd.toml").replace("{estimator}", "learned"))?;
                let ptp = match self {
                    Relay::FfclockGrandmaster => include_str!("configurations/ffclock-serve-ptp.toml"),
                    _ => "",
                };
                of(configuration, &(include_str!("configurations/ffclock-serve.toml").to_owned() + ptp))?;
            }
            Relay::Chronyd => {
                of(configuration, concat!(include_str!("configurations/chronyd-default.conf"), "allow all\n"))?;
            }
        }
        Ok(())
    }
}

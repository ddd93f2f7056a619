//! The daemons, each with its configurations: as shipped, and tuned by its own manual.

use super::plan::LivePlan;
use crate::failure::Failure;
use crate::lab::worker::WorkerRights;
use std::fs;
use std::path::{Path, PathBuf};

/// Which program a contestant runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContestantProgram {
    /// Beside this program; the estimator by its name in the configuration.
    Ffclockd(&'static str),
    /// ffclockd with this estimator, and ffclock-steer, on one system clock, which is the one that counts.
    Steered(&'static str),
    Chronyd,
    Ntpd,
}

/// A daemon with a configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contestant {
    pub(super) name: &'static str,
    pub(super) program: ContestantProgram,
    template: &'static str,
}

/// The follower ($0), and beside it the daemon ($1) with its configuration ($2) and page ($3), which ends with it. The
/// defaults of the follower, whatever the host has in /etc.
const STEERED: &str = "setpriv --pdeathsig KILL \"$1\" --config \"$2\" & : > \"$2.steer\"; exec \"$0\" --config \"$2.steer\" --page \"$3\"";

/// All of them, in the order of the table.
pub(super) const CONTESTANTS: &[Contestant] = &[
    Contestant {
        name: "ffclockd-learned",
        program: ContestantProgram::Ffclockd("learned"),
        template: include_str!("configurations/ffclockd.toml"),
    },
    Contestant {
        name: "ffclockd-classic",
        program: ContestantProgram::Ffclockd("classic"),
        template: include_str!("configurations/ffclockd.toml"),
    },
    Contestant {
        name: "ffclockd-tuned",
        program: ContestantProgram::Ffclockd("learned"),
        template: include_str!("configurations/ffclockd-tuned.toml"),
    },
    Contestant {
        name: "ffclock-steer",
        program: ContestantProgram::Steered("learned"),
        template: include_str!("configurations/ffclockd.toml"),
    },
    Contestant {
        name: "chronyd-default",
        program: ContestantProgram::Chronyd,
        template: include_str!("configurations/chronyd-default.conf"),
    },
    Contestant {
        name: "chronyd-tuned",
        program: ContestantProgram::Chronyd,
        template: include_str!("configurations/chronyd-tuned.conf"),
    },
    Contestant {
        name: "ntpd-default",
        program: ContestantProgram::Ntpd,
        template: include_str!("configurations/ntpd-default.conf"),
    },
    Contestant {
        name: "ntpd-tuned",
        program: ContestantProgram::Ntpd,
        template: include_str!("configurations/ntpd-tuned.conf"),
    },
];

/// The contestants of these names; all of them where none is named.
pub(super) fn chosen(names: &[String]) -> Result<Vec<Contestant>, Failure> {
    if names.is_empty() {
        return Ok(CONTESTANTS.to_vec());
    }
    let all = || CONTESTANTS.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        let found = CONTESTANTS.iter().find(|one| one.name == name).copied();
        found.ok_or_else(|| Failure::usage(format!("there is no contestant {name:?}; there are {}", all())))
    };
    names.iter().map(find).collect()
}

/// Where a contestant runs.
pub(super) struct Post<'a> {
    /// Its own directory.
    pub(super) directory: &'a Path,
    /// The server's address on its link.
    pub(super) server: String,
    pub(super) plan: LivePlan,
    /// Where the peers' programs are.
    pub(super) peers: &'a Path,
}

impl Contestant {
    /// Writes the configuration, and a drift file as after an earlier run where there is none: `skew_ppm` is the mean
    /// rate of the oscillator, positive: fast. Gives the command.
    pub(super) fn prepare(&self, post: &Post<'_>, skew_ppm: f64) -> Result<Vec<String>, Failure> {
        let directory = post.directory.display().to_string();
        let configuration = post.directory.join("configuration").display().to_string();
        let words = |program: String, options: &[&str]| {
            let options = options.iter().map(|option| (*option).to_owned());
            [program].into_iter().chain(options).chain([configuration.clone()]).collect()
        };
        let (command, drift, estimator) = match self.program {
            ContestantProgram::Ffclockd(estimator) => {
                (words(crate::demo::sibling("ffclockd")?, &["--config"]), None, estimator)
            }
            ContestantProgram::Steered(estimator) => {
                let page = post.directory.join("page").display().to_string();
                let programs = [crate::demo::sibling("ffclockd")?, crate::demo::sibling("ffclock-steer")?];
                let [daemon, follower] = programs;
                let script = ["sh".to_owned(), "-c".to_owned(), STEERED.to_owned(), follower, daemon];
                let command = script.into_iter().chain([configuration.clone(), page]).collect();
                (command, None, estimator)
            }
            ContestantProgram::Chronyd => {
                let options = ["-d", "-u", "root", "-f"];
                // chrony.conf(5), driftfile: positive where the clock gains; then the error of that figure.
                (words(peer(post.peers, "chronyd")?, &options), Some(format!("{skew_ppm:.3} 0.100\n")), "")
            }
            ContestantProgram::Ntpd => {
                // ntp.conf(5), driftfile: the correction.
                (words(peer(post.peers, "ntpd")?, &["-n", "-g", "-c"]), Some(format!("{:.3}\n", -skew_ppm)), "")
            }
        };
        let text = self.template.replace("{server}", &post.server).replace("{directory}", &directory);
        let text = text.replace("{poll_log2}", &post.plan.poll_log2.to_string());
        let text = text.replace("{poll}", &post.plan.poll_s().to_string()).replace("{estimator}", estimator);
        fs::write(&configuration, text)?;
        if let Some(drift) = drift.filter(|_| !post.directory.join("drift").exists()) {
            fs::write(post.directory.join("drift"), drift)?;
        }
        Ok(command)
    }

    /// What it may do to the host.
    pub(super) fn rights(&self) -> WorkerRights {
        match self.program {
            ContestantProgram::Ffclockd(_) | ContestantProgram::Steered(_) => WorkerRights::None,
            ContestantProgram::Chronyd | ContestantProgram::Ntpd => WorkerRights::AllButTheClock,
        }
    }

    /// The page that it publishes, where it does.
    pub(super) fn page(&self, directory: &Path) -> Option<PathBuf> {
        matches!(self.program, ContestantProgram::Ffclockd(_)).then(|| directory.join("page"))
    }
}

/// The configuration of the server, and its command.
pub(super) fn server_command(directory: &Path, peers: &Path) -> Result<Vec<String>, Failure> {
    let text = include_str!("configurations/server.conf").replace("{directory}", &directory.display().to_string());
    let configuration = directory.join("configuration");
    fs::write(&configuration, text)?;
    let options = ["-x", "-d", "-u", "root", "-f"].map(str::to_owned);
    let program = peer(peers, "chronyd")?;
    Ok([program].into_iter().chain(options).chain([configuration.display().to_string()]).collect())
}

/// A program of a peer. Links are not resolved: the wrappers depend on the name by which they are called.
fn peer(peers: &Path, name: &str) -> Result<String, Failure> {
    let path = std::path::absolute(peers.join(name))?;
    if path.exists() {
        return Ok(path.display().to_string());
    }
    Err(format!("{} is missing; name the directory of the peers with --peers", path.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_configuration_is_complete() {
        let directory = std::env::temp_dir().join(format!("ffclock-live-configurations-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let is_peer = |one: &&Contestant| matches!(one.program, ContestantProgram::Chronyd | ContestantProgram::Ntpd);
        for contestant in CONTESTANTS.iter().filter(is_peer) {
            let plan = LivePlan::named("quiet-16").unwrap();
            let post = Post { directory: &directory, server: "192.0.2.1".to_owned(), plan, peers: &directory };
            fs::write(directory.join("chronyd"), "").unwrap();
            fs::write(directory.join("ntpd"), "").unwrap();
            contestant.prepare(&post, 12.5).unwrap();
            let text = fs::read_to_string(directory.join("configuration")).unwrap();
            assert!(text.contains("192.0.2.1") && text.contains("maxpoll 4") && !text.contains('{'), "{text}");
            let drift = fs::read_to_string(directory.join("drift")).unwrap();
            let is_correction = contestant.program == ContestantProgram::Ntpd;
            assert!(drift.starts_with(if is_correction { "-12.5" } else { "12.5" }), "{drift}");
            fs::remove_file(directory.join("drift")).unwrap();
        }
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn an_unknown_contestant_is_refused() {
        assert_eq!(chosen(&["sundial".to_owned()]).unwrap_err().code, Failure::USAGE);
        assert_eq!(chosen(&[]).unwrap().len(), CONTESTANTS.len());
    }
}

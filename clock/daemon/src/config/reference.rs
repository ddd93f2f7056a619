//! References at this host: what is read, and what the operator states about it.

use super::values::Unrecognised;
use super::{Config, ServerConfig};
use ffclock_reference::HardwareScale;
use ffclock_service::words;
use ffclock_sys::PulseEdge;
use ffclock_units::{Bound, OptionValue, Span};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

ffclock_units::options! {
    /// A clock at this host in place of a server.
    pub struct ReferenceConfig {
        /// What is read: `"pps:/dev/pps0"` for pulses, which need another server or reference that says which second it
        /// is; `"phc:/dev/ptp0"` for a hardware clock that another program keeps on time; `"shm:0"` for a unit of
        /// ntpd's shared memory; `"sock:/run/ffclock/gps.sock"` for samples in chrony's form, on a socket that is made
        /// there; `"vmclock:/dev/vmclock0"` for the time that the host of this virtual machine gives. Each reference
        /// has this key.
        input: ReferenceInput = ReferenceInput::Unset;
        /// The largest error of the reference as it is seen here: its own, its jitter, and how late its signal can be
        /// recorded. The bound rests on it, so there is no default; each reference has this key, but a VMClock, which
        /// states its own error: there it is added.
        error: Bound = Bound::ZERO, Bound::ZERO => Bound::of(Span::from_secs(1));
        /// How long the signal is on its way, such as 5 ns for each metre of cable: what is seen is this much older
        /// than the moment.
        delay: Span = Span::ZERO, Span::from_secs(-1) => Span::from_secs(1);
        /// The edge of a pulse that begins the second, as the device names them.
        edge: EdgeChoice = EdgeChoice::Assert;
        /// The scale that a hardware clock is kept on: `"tai"` as programs of PTP keep it, or `"utc"`.
        scale: ScaleChoice = ScaleChoice::Tai;
    }
}

/// What is read.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ReferenceInput {
    /// Nothing is configured.
    #[default]
    Unset,
    /// The pulses of a device.
    Pulses(PathBuf),
    /// The hardware clock of this number.
    Clock(u32),
    /// A unit of ntpd's shared memory.
    Shared(u8),
    /// A socket for samples in chrony's form.
    Socket(PathBuf),
    /// The page that the host of this virtual machine keeps.
    Machine(PathBuf),
}

impl ReferenceInput {
    /// The kind in four characters: the reference identifier (RFC 5905 figure 12).
    pub(crate) fn reference_id(&self) -> [u8; 4] {
        match self {
            ReferenceInput::Unset => [0; 4],
            ReferenceInput::Pulses(_) => *b"PPS\0",
            ReferenceInput::Clock(_) => *b"PHC\0",
            ReferenceInput::Shared(_) => *b"SHM\0",
            ReferenceInput::Socket(_) => *b"SOCK",
            ReferenceInput::Machine(_) => *b"VMCK",
        }
    }
}

/// The last unit of shared memory.
const LAST_UNIT: u8 = 3;
/// The most bytes of a socket's path (unix(7)).
const LONGEST_SOCKET: usize = 107;

impl FromStr for ReferenceInput {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        let (kind, place) = text.split_once(':').ok_or(Unrecognised)?;
        let path = || Some(PathBuf::from(place)).filter(|path| path.is_absolute() && !place.contains('\0'));
        let input = match kind {
            "pps" => path().map(ReferenceInput::Pulses),
            "phc" => place.strip_prefix("/dev/ptp").and_then(plain_number).map(ReferenceInput::Clock),
            "shm" => plain_number(place)
                .and_then(|unit| u8::try_from(unit).ok())
                .filter(|unit| *unit <= LAST_UNIT)
                .map(ReferenceInput::Shared),
            "sock" => path().filter(|_| place.len() <= LONGEST_SOCKET).map(ReferenceInput::Socket),
            "vmclock" => path().map(ReferenceInput::Machine),
            _ => None,
        };
        input.ok_or(Unrecognised)
    }
}

/// A number written in the one usual way.
fn plain_number(text: &str) -> Option<u32> {
    text.parse::<u32>().ok().filter(|number| number.to_string() == text)
}

impl fmt::Display for ReferenceInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReferenceInput::Unset => Ok(()),
            ReferenceInput::Pulses(path) => write!(f, "pps:{}", path.display()),
            ReferenceInput::Clock(number) => write!(f, "phc:/dev/ptp{number}"),
            ReferenceInput::Shared(unit) => write!(f, "shm:{unit}"),
            ReferenceInput::Socket(path) => write!(f, "sock:{}", path.display()),
            ReferenceInput::Machine(path) => write!(f, "vmclock:{}", path.display()),
        }
    }
}

impl OptionValue for ReferenceInput {
    const KIND: &'static str = "\"pps:\" and a device, \"phc:/dev/ptpN\", \"shm:\" and a unit from 0 to 3, or \"sock:\" or \"vmclock:\" and a path";
}

/// Which edge of a pulse begins the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeChoice {
    /// The one that the device calls assert.
    Assert,
    /// The one that it calls clear.
    Clear,
}

words!(EdgeChoice { Assert: "assert", Clear: "clear" });

impl From<EdgeChoice> for PulseEdge {
    fn from(choice: EdgeChoice) -> Self {
        match choice {
            EdgeChoice::Assert => PulseEdge::Assert,
            EdgeChoice::Clear => PulseEdge::Clear,
        }
    }
}

/// The scale of a hardware clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleChoice {
    /// TAI.
    Tai,
    /// UTC.
    Utc,
}

words!(ScaleChoice { Tai: "tai", Utc: "utc" });

impl From<ScaleChoice> for HardwareScale {
    fn from(choice: ScaleChoice) -> Self {
        match choice {
            ScaleChoice::Tai => HardwareScale::Tai,
            ScaleChoice::Utc => HardwareScale::Utc,
        }
    }
}

/// Time between two samples unless `poll` says otherwise, and the most: samples further apart make no exchange.
pub(super) const USUAL_POLL: Span = Span::from_secs(1);
const LONGEST_POLL: Span = Span::from_secs(4);

/// What is wrong with a table as a whole, given its keys.
pub(super) fn contradiction(server: &ServerConfig, keys: &[&str]) -> Option<String> {
    let reference = server.reference.as_ref()?;
    let is_clock = matches!(reference.input, ReferenceInput::Clock(_));
    let is_pulses = matches!(reference.input, ReferenceInput::Pulses(_));
    let states_error = matches!(reference.input, ReferenceInput::Machine(_));
    if reference.input == ReferenceInput::Unset {
        (!keys.contains(&"input")).then(|| "the reference has no input".to_owned())
    } else if reference.error == Bound::ZERO && !states_error {
        let said = "the reference has no error: state the largest one that it can have, such as error = \"10 us\"";
        Some(said.to_owned())
    } else if keys.contains(&"scale") && !is_clock {
        Some("scale is for a hardware clock alone: the others say which it is, or give UTC".to_owned())
    } else if keys.contains(&"edge") && !is_pulses {
        Some("edge is for pulses alone".to_owned())
    } else if server.source.poll > LONGEST_POLL {
        Some(format!("poll = \"{}\": a reference is read every {LONGEST_POLL} at least", server.source.poll))
    } else {
        None
    }
}

/// Pulses that nothing can number, with the key that it is about.
pub(super) fn contradictions(config: &Config) -> Vec<(&'static str, String)> {
    let is_pulses = |server: &&ServerConfig| {
        server.reference.as_ref().is_some_and(|reference| matches!(reference.input, ReferenceInput::Pulses(_)))
    };
    let count = config.servers.iter().filter(is_pulses).count();
    if count == 0 || count < config.servers.len() {
        return Vec::new();
    }
    let message = "pulses do not say which second they begin: add a [[server]] or another [[reference]] that does";
    vec![("reference", message.to_owned())]
}

/// Why the device of a reference cannot be opened now.
pub(super) fn obstacle(reference: &ReferenceConfig) -> Option<String> {
    let device = match &reference.input {
        ReferenceInput::Pulses(path) | ReferenceInput::Machine(path) => path.clone(),
        ReferenceInput::Clock(number) => PathBuf::from(format!("/dev/ptp{number}")),
        ReferenceInput::Socket(_) | ReferenceInput::Shared(_) | ReferenceInput::Unset => return None,
    };
    let error = std::fs::File::open(&device).err()?;
    Some(format!("input = \"{}\": {error}", reference.input))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> (usize, String) {
        let error = Config::parse(text).unwrap_err();
        let [problem] = &error.problems[..] else { panic!("{error}") };
        (problem.line, problem.message.clone())
    }

    const PHC: &str = "[[reference]]\ninput = \"phc:/dev/ptp3\"\nerror = \"1 us\"\n";

    #[test]
    fn a_reference_stands_beside_servers_and_votes_like_them() {
        let text =
            format!("[source]\npoll = \"16 s\"\n[[server]]\naddress = \"a\"\n{PHC}scale = \"utc\"\ntrust = true\n");
        let config = Config::parse(&text).unwrap();
        let [server, reference] = &config.servers[..] else { panic!() };
        assert!(server.reference.is_none() && reference.vote.trust);
        assert_eq!((reference.name().as_str(), reference.source.poll), ("phc:/dev/ptp3", USUAL_POLL));
        let options = reference.reference.as_ref().unwrap();
        assert_eq!((&options.input, options.scale), (&ReferenceInput::Clock(3), ScaleChoice::Utc));
        assert!(Config::parse(PHC).is_ok(), "a reference is enough");
        let machine = Config::parse("[[reference]]\ninput = \"vmclock:/dev/vmclock0\"\n").unwrap();
        assert_eq!(machine.servers[0].reference.as_ref().unwrap().error, Bound::ZERO, "it states its own");
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_line() {
        for (text, line, said) in [
            ("[[reference]]\nerror = \"1 us\"\n".to_owned(), 1, "the reference has no input"),
            ("[[reference]]\ninput = \"shm:0\"\n".to_owned(), 1, "the reference has no error"),
            (format!("{PHC}edge = \"clear\"\n"), 1, "edge is for pulses alone"),
            (format!("{PHC}poll = \"16 s\"\n"), 1, "a reference is read every 4 s at least"),
            (format!("{PHC}{PHC}"), 4, "the reference phc:/dev/ptp3 is configured twice"),
            (format!("{PHC}address = \"a\"\n"), 4, "address"),
            ("reference = 3\n".to_owned(), 1, "references are written as [[reference]]"),
            ("[[reference]]\ninput = \"pps:/dev/pps0\"\nerror = \"9 us\"\n".to_owned(), 1, "do not say which second"),
            ("[[reference]]\ninput = \"shm:0\"\nerror = \"1 us\"\nscale = \"utc\"\n".to_owned(), 1, "scale is for"),
        ] {
            let (at, message) = problem(&text);
            assert!(at == line && message.contains(said), "{text}: {at} {message}");
        }
    }

    #[test]
    fn inputs_read_back_and_nothing_else_is_one() {
        for text in ["pps:/dev/pps0", "phc:/dev/ptp12", "shm:0", "shm:3", "sock:/run/gps.sock", "vmclock:/dev/vmclock0"]
        {
            assert_eq!(text.parse::<ReferenceInput>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "pps",
            "pps:",
            "pps:pps0",
            "phc:/dev/pps0",
            "phc:/dev/ptp01",
            "shm:4",
            "shm:-1",
            "shm:x",
            "sock:gps",
            "gps:0",
            "vmclock:vmclock0",
        ] {
            assert_eq!(text.parse::<ReferenceInput>(), Err(Unrecognised), "{text}");
        }
        assert!(format!("sock:/{}", "x".repeat(107)).parse::<ReferenceInput>().is_err());
    }
}

//! The daemons, each with its configurations: as shipped, and tuned by its own manual.

use super::clock_bound::ClockBoundFile;
use super::network::CONTESTANT_END;
use super::plan::LivePlan;
use super::relay::Relay;
use crate::failure::Failure;
use crate::lab::worker::WorkerRights;
use ffclock_counter::CounterId;
use ffclock_daemon::memory::{Circumstances, RateStore};
use ffclock_units::{Period, Rate, RateMemory};
use std::fs;
use std::path::{Path, PathBuf};

/// Which program a contestant runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContestantProgram {
    /// Beside this program; the estimator by its name in the configuration.
    Ffclockd(&'static str),
    /// ffclockd with this estimator, and ffclock-steer, on one system clock, which is the one that counts.
    Steered(&'static str),
    /// chronyd that `ffclock feed` gives the time of an ffclockd beside it, on one system clock.
    FedChronyd,
    Chronyd,
    Ntpd,
    /// ffclockd that follows a master of PTP.
    FfclockdPtp(&'static str),
    /// A follower of PTP.
    Ptp4l,
    Ptpd,
    /// ClockBound's daemon, which bounds the error of the chronyd beside it.
    ClockBound,
}

/// A daemon with a configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contestant {
    pub(super) name: &'static str,
    pub(super) program: ContestantProgram,
    /// Whom it asks in place of the server.
    pub(super) behind: Option<Relay>,
    /// Whether it chooses its polls itself, from that of the plan to 64 times as long.
    is_relaxed: bool,
    template: &'static str,
}

/// The follower ($0), and beside it the daemon ($1) with its configuration ($2) and page ($3), which ends with it. The
/// defaults of the follower, whatever the host has in /etc.
const STEERED: &str = "setpriv --pdeathsig KILL \"$1\" --config \"$2\" & : > \"$2.steer\"; exec \"$0\" --config \"$2.steer\" --page \"$3\"";

/// chronyd ($0) with its configuration ($2), and ClockBound's daemon ($1), which ends with it. Both look for each other
/// below /run, which is a place within the directory ($3) for them.
const BOUNDED: &str = "exec unshare --mount sh -c 'mkdir -p \"$3/run\" && mount --bind \"$3/run\" /run || exit 1
mkdir -p -m 750 /run/chrony /run/clockbound
setpriv --pdeathsig KILL \"$1\" --disable-clock-disruption-support --max-drift-rate 50 &
exec \"$0\" -d -u root -f \"$2\"' \"$0\" \"$1\" \"$2\" \"$3\"";

/// chronyd ($0) with its configuration ($3.chronyd), and beside it the daemon ($1) with its configuration ($3) and the
/// feed ($2) of its page ($4) into chronyd's socket ($5); both end with it.
const FED: &str = "setpriv --pdeathsig KILL \"$1\" --config \"$3\" & \
                   setpriv --pdeathsig KILL \"$2\" --page \"$4\" feed --chrony \"$5\" & exec \"$0\" -d -u root -f \"$3.chronyd\"";

impl Contestant {
    /// One that asks the server itself.
    const fn alone(name: &'static str, program: ContestantProgram, template: &'static str) -> Self {
        Contestant { name, program, behind: None, is_relaxed: false, template }
    }

    /// The same with polls that it chooses itself.
    const fn relaxed(self, name: &'static str) -> Self {
        Contestant { name, is_relaxed: true, ..self }
    }

    /// The same behind this relay.
    const fn behind(self, name: &'static str, relay: Relay) -> Self {
        Contestant { name, behind: Some(relay), ..self }
    }
}

/// All of them, in the order of the table. Some run only where they are named: [`Contestant::is_by_name_only`].
pub(super) const CONTESTANTS: &[Contestant] = &{
    use ContestantProgram::{Chronyd, ClockBound, FedChronyd, Ffclockd, FfclockdPtp, Ntpd, Ptp4l, Ptpd, Steered};
    const FFCLOCKD: &str = include_str!("configurations/ffclockd.toml");
    const FFCLOCKD_TUNED: &str = include_str!("configurations/ffclockd-tuned.toml");
    const FFCLOCKD_PTP: &str = include_str!("configurations/ffclockd-ptp.toml");
    const CHRONYD: Contestant =
        Contestant::alone("chronyd-default", Chronyd, include_str!("configurations/chronyd-default.conf"));
    const NTPD_TUNED: Contestant =
        Contestant::alone("ntpd-tuned", Ntpd, include_str!("configurations/ntpd-tuned.conf"));
    const PTP4L: Contestant =
        Contestant::alone("ptp4l-default", Ptp4l, include_str!("configurations/ptp4l-default.conf"));
    const OURS_BY_PTP: Contestant = Contestant::alone("ffclockd-ptp", FfclockdPtp("learned"), FFCLOCKD_PTP);
    [
        Contestant::alone("ffclockd-learned", Ffclockd("learned"), FFCLOCKD),
        Contestant::alone("ffclockd-classic", Ffclockd("classic"), FFCLOCKD),
        Contestant::alone("ffclockd-tuned", Ffclockd("learned"), FFCLOCKD_TUNED),
        OURS_BY_PTP,
        Contestant::alone("ffclock-steer", Steered("learned"), FFCLOCKD),
        Contestant::alone("ffclock-steer-tuned", Steered("learned"), FFCLOCKD_TUNED),
        CHRONYD,
        Contestant::alone("chronyd-tuned", Chronyd, include_str!("configurations/chronyd-tuned.conf")),
        Contestant::alone("chronyd-sock", FedChronyd, FFCLOCKD),
        Contestant::alone("chronyd-sock-tuned", FedChronyd, FFCLOCKD_TUNED),
        Contestant::alone("ntpd-default", Ntpd, include_str!("configurations/ntpd-default.conf")),
        NTPD_TUNED,
        PTP4L,
        Contestant::alone("ptp4l-tuned", Ptp4l, include_str!("configurations/ptp4l-tuned.conf")),
        Contestant::alone("ptpd-default", Ptpd, include_str!("configurations/ptpd-default.conf")),
        Contestant::alone("ptpd-tuned", Ptpd, include_str!("configurations/ptpd-tuned.conf")),
        Contestant::alone("clockbound", ClockBound, include_str!("configurations/clockbound-chronyd.conf")),
        CHRONYD.relaxed("chronyd-relaxed"),
        NTPD_TUNED.relaxed("ntpd-relaxed"),
        CHRONYD.behind("ffclock-then-chronyd", Relay::Ffclock),
        CHRONYD.behind("chronyd-then-chronyd", Relay::Chronyd),
        OURS_BY_PTP.behind("ffclock-then-ffclockd", Relay::FfclockGrandmaster),
        PTP4L.behind("ffclock-then-ptp4l", Relay::FfclockGrandmaster),
    ]
};

/// The contestants of these names; all but those that run by name only where none is named.
pub(super) fn chosen(names: &[String]) -> Result<Vec<Contestant>, Failure> {
    if names.is_empty() {
        return Ok(CONTESTANTS.iter().filter(|one| !one.is_by_name_only()).copied().collect());
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
    /// The address of the server, or of its relay, on its link; then that of the second server, where there is one.
    pub(super) servers: Vec<String>,
    pub(super) plan: LivePlan,
    /// Where the peers' programs are.
    pub(super) peers: &'a Path,
}

impl Contestant {
    /// Writes the configuration, and a drift file or a remembered rate as after an earlier run where there is none:
    /// `skew_ppm` is the mean rate of the oscillator, positive: fast. Gives the command.
    pub(super) fn prepare(&self, post: &Post<'_>, skew_ppm: f64) -> Result<Vec<String>, Failure> {
        if self.follows_master() {
            // Without it there is no master.
            peer(post.peers, "ptp4l")?;
        }
        let command = self.command(post)?;
        self.configure(post, skew_ppm)?;
        Ok(command)
    }

    fn command(&self, post: &Post<'_>) -> Result<Vec<String>, Failure> {
        let configuration = post.directory.join("configuration").display().to_string();
        let words = |program: String, options: &[&str]| {
            let options = options.iter().map(|option| (*option).to_owned());
            [program].into_iter().chain(options).chain([configuration.clone()]).collect()
        };
        let script = |script: &str, words: Vec<String>| -> Vec<String> {
            ["sh".to_owned(), "-c".to_owned(), script.to_owned()].into_iter().chain(words).collect()
        };
        Ok(match self.program {
            ContestantProgram::Ffclockd(_) | ContestantProgram::FfclockdPtp(_) => {
                words(crate::demo::sibling("ffclockd")?, &["--config"])
            }
            ContestantProgram::Steered(_) => {
                let page = post.directory.join("page").display().to_string();
                let [daemon, follower] = [crate::demo::sibling("ffclockd")?, crate::demo::sibling("ffclock-steer")?];
                script(STEERED, vec![follower, daemon, configuration.clone(), page])
            }
            ContestantProgram::FedChronyd => {
                let [page, socket] = ["page", "sock"].map(|name| post.directory.join(name).display().to_string());
                let [daemon, feed] = [crate::demo::sibling("ffclockd")?, crate::demo::sibling("ffclock")?];
                script(FED, vec![peer(post.peers, "chronyd")?, daemon, feed, configuration.clone(), page, socket])
            }
            ContestantProgram::Chronyd => words(peer(post.peers, "chronyd")?, &["-d", "-u", "root", "-f"]),
            ContestantProgram::Ntpd => words(peer(post.peers, "ntpd")?, &["-n", "-g", "-c"]),
            ContestantProgram::Ptp4l => words(peer(post.peers, "ptp4l")?, &["-m", "-f"]),
            ContestantProgram::Ptpd => words(peer(post.peers, "ptpd")?, &["-C", "-c"]),
            ContestantProgram::ClockBound => {
                let [chronyd, clockbound] = [peer(post.peers, "chronyd")?, peer(post.peers, "clockbound")?];
                let directory = post.directory.display().to_string();
                script(BOUNDED, vec![chronyd, clockbound, configuration.clone(), directory])
            }
        })
    }

    /// Writes what it reads at its start.
    fn configure(&self, post: &Post<'_>, skew_ppm: f64) -> Result<(), Failure> {
        let poll_max = post.plan.poll_log2 + if self.is_relaxed { RELAXED_BY_LOG2 } else { 0 };
        let template = self.template.replace("{poll_max}", &poll_max.to_string());
        written(post, "configuration", &template.replace("{estimator}", self.program.estimator()))?;
        if self.program == ContestantProgram::FedChronyd {
            written(post, "configuration.chronyd", include_str!("configurations/chronyd-sock.conf"))?;
        }
        let drift = self.program.drift(skew_ppm).filter(|_| !post.directory.join("drift").exists());
        drift.map_or(Ok(()), |drift| fs::write(post.directory.join("drift"), drift))?;
        if !self.program.estimator().is_empty() {
            remember_rate(&post.directory.join("state"), skew_ppm)?;
        }
        Ok(())
    }

    /// The frequency that an earlier run left in its system clock, relative, where it keeps it there.
    pub(super) fn frequency_left(&self, skew_ppm: f64) -> f64 {
        let keeps = matches!(self.program, ContestantProgram::Ptp4l | ContestantProgram::Ptpd);
        if keeps { -skew_ppm * 1e-6 } else { 0.0 }
    }

    /// What it may do to the host.
    pub(super) fn rights(&self) -> WorkerRights {
        match self.program {
            ContestantProgram::Ffclockd(_) | ContestantProgram::Steered(_) => WorkerRights::None,
            _ => WorkerRights::AllButTheClock,
        }
    }

    /// Those behind a relay, those that choose their polls themselves, and the two whose chronyd has another program
    /// beside it, ClockBound's daemon or `ffclock feed`.
    fn is_by_name_only(&self) -> bool {
        let is_special = matches!(self.program, ContestantProgram::ClockBound | ContestantProgram::FedChronyd);
        self.behind.is_some() || self.is_relaxed || is_special
    }

    /// Whether it follows the master of PTP at the server.
    pub(super) fn follows_master(&self) -> bool {
        use ContestantProgram::{FfclockdPtp, Ptp4l, Ptpd};
        self.behind.is_none() && matches!(self.program, FfclockdPtp(_) | Ptp4l | Ptpd)
    }

    /// The bound of its system clock, where another program claims one.
    pub(super) fn bound(&self, directory: &Path) -> Option<ClockBoundFile> {
        let file = directory.join("run").join("clockbound").join("shm0");
        (self.program == ContestantProgram::ClockBound).then(|| ClockBoundFile::at(file))
    }

    /// The page that it publishes, where it does.
    pub(super) fn page(&self, directory: &Path) -> Option<PathBuf> {
        let publishes = matches!(self.program, ContestantProgram::Ffclockd(_) | ContestantProgram::FfclockdPtp(_));
        publishes.then(|| directory.join("page"))
    }
}

impl ContestantProgram {
    fn estimator(self) -> &'static str {
        match self {
            ContestantProgram::Ffclockd(name) | ContestantProgram::FfclockdPtp(name) => name,
            ContestantProgram::Steered(name) => name,
            ContestantProgram::FedChronyd => "learned",
            _ => "",
        }
    }

    /// What its drift file says after an earlier run, where it has one.
    fn drift(self, skew_ppm: f64) -> Option<String> {
        match self {
            // chrony.conf(5), driftfile: positive where the clock gains; then the error of that figure.
            ContestantProgram::Chronyd | ContestantProgram::FedChronyd | ContestantProgram::ClockBound => {
                Some(format!("{skew_ppm:.3} {RATE_ERROR_PPM:.3}\n"))
            }
            // ntp.conf(5), driftfile: the correction.
            ContestantProgram::Ntpd => Some(format!("{:.3}\n", -skew_ppm)),
            _ => None,
        }
    }
}

/// How well an earlier run knew the rate, ppm: what the drift file of chronyd says as well.
const RATE_ERROR_PPM: f64 = 0.1;

/// Where ffclockd remembers the rate of the laboratory's counter.
fn rate_store(directory: &Path) -> RateStore {
    let circumstances = Circumstances {
        counter: CounterId::MonotonicRaw,
        boot: ffclock_counter::boot_id(),
        clocksource: ffclock_counter::current_clocksource(),
        machine: None,
        suspended: None,
    };
    RateStore::new(directory, circumstances)
}

/// The rate that an earlier run of ffclockd left, where none is stored.
fn remember_rate(directory: &Path, skew_ppm: f64) -> Result<(), Failure> {
    let nominal = Period::from_hertz(1e9).expect("a nanosecond is a period");
    let store = rate_store(directory);
    if store.load(nominal)?.is_none() {
        let (rate, bound) = (Rate::from_ppm(skew_ppm), Rate::from_ppm(RATE_ERROR_PPM));
        let period = Period::from_hertz(1e9 * (1.0 + rate.as_fraction())).expect("a crystal's rate");
        store.save(RateMemory { period, bound, wander: None })?;
    }
    Ok(())
}

/// The longest poll of those who choose theirs, over the shortest, as a power of two: 1024 s over 16 s.
const RELAXED_BY_LOG2: i32 = 6;

/// The template with what it says of a server once for each: a line, or a TOML table that ends with the file. One that
/// names no server, as that of a master of PTP, stays one.
fn of_each_server(template: &str, servers: &[String]) -> String {
    let (lines, table) = template.split_at(template.find("[[server]]").unwrap_or(template.len()));
    let of_each = |text: &str| servers.iter().map(|server| text.replace("{server}", server)).collect::<String>();
    let fill = |line: &str| if line.contains("{server}") { of_each(line) } else { line.to_owned() };
    lines.split_inclusive('\n').chain([table]).map(fill).collect()
}

/// Fills a template and writes it as `name` into the directory of the post; gives its path.
pub(super) fn written(post: &Post<'_>, name: &str, template: &str) -> Result<String, Failure> {
    let text = of_each_server(template, &post.servers).replace("{interface}", CONTESTANT_END);
    let text = text.replace("{directory}", &post.directory.display().to_string());
    let text = ["{poll_log2}", "{poll_max}"]
        .iter()
        .fold(text, |text, place| text.replace(place, &post.plan.poll_log2.to_string()));
    let text = text.replace("{poll}", &post.plan.poll_s().to_string());
    let path = post.directory.join(name);
    fs::write(&path, text)?;
    Ok(path.display().to_string())
}

/// The configuration of the master of PTP beside the server, and its command. It serves the same clock, on these
/// devices.
pub(super) fn master_command(post: &Post<'_>, devices: &[String]) -> Result<Vec<String>, Failure> {
    let sections: String = devices.iter().map(|device| format!("[{device}]\n")).collect();
    let text = include_str!("configurations/ptp4l-master.conf").to_owned() + &sections;
    let configuration = written(post, "ptp4l-configuration", &text)?;
    Ok([peer(post.peers, "ptp4l")?, "-m".to_owned(), "-f".to_owned(), configuration].to_vec())
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
pub(super) fn peer(peers: &Path, name: &str) -> Result<String, Failure> {
    let path = std::path::absolute(peers.join(name))?;
    if path.exists() {
        return Ok(path.display().to_string());
    }
    Err(format!("{} is missing; name the directory of the peers with --peers", path.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "192.0.2.1";

    fn post(directory: &Path) -> Post<'_> {
        let plan = LivePlan::named("quiet-16").unwrap();
        Post { directory, servers: vec![SERVER.to_owned()], plan, peers: directory }
    }

    /// The configurations that were written into a directory; each of them has all of its places filled.
    fn written_into(directory: &Path) -> Vec<String> {
        let names = ["configuration", "configuration.chronyd", "daemon"];
        let texts: Vec<String> =
            names.iter().filter_map(|name| fs::read_to_string(directory.join(name)).ok()).collect();
        texts.iter().for_each(|text| assert!(!text.contains(['{', '}']), "{text}"));
        texts
    }

    #[test]
    fn every_configuration_is_complete() {
        let place = std::env::temp_dir().join(format!("ffclock-live-configurations-{}", std::process::id()));
        for contestant in CONTESTANTS {
            let directory = place.join(contestant.name);
            fs::create_dir_all(&directory).unwrap();
            contestant.configure(&post(&directory), 12.5).unwrap();
            let texts = written_into(&directory);
            use ContestantProgram::{FfclockdPtp, Ntpd, Ptp4l, Ptpd};
            let names =
                if matches!(contestant.program, FfclockdPtp(_) | Ptp4l | Ptpd) { CONTESTANT_END } else { SERVER };
            assert!(texts.iter().any(|text| text.contains(names)), "{}: {texts:?}", contestant.name);
            let drift = fs::read_to_string(directory.join("drift")).ok();
            assert_eq!(drift.is_some(), contestant.program.drift(12.5).is_some(), "{}", contestant.name);
            let sign = if contestant.program == Ntpd { "-12.5" } else { "12.5" };
            assert!(drift.is_none_or(|drift| drift.starts_with(sign)), "{}", contestant.name);
        }
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn every_configuration_of_a_relay_is_complete() {
        let place = std::env::temp_dir().join(format!("ffclock-live-relays-{}", std::process::id()));
        for relay in [Relay::Ffclock, Relay::FfclockGrandmaster, Relay::Chronyd] {
            let directory = place.join(format!("{relay:?}"));
            fs::create_dir_all(&directory).unwrap();
            relay.configure(&post(&directory), 107).unwrap();
            let texts = written_into(&directory);
            assert!(texts.iter().any(|text| text.contains(SERVER)), "{relay:?}: {texts:?}");
        }
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn every_server_is_named_and_polls_are_chosen_where_they_may_be() {
        let directory = std::env::temp_dir().join(format!("ffclock-live-servers-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let servers = || ["192.0.2.1", "198.51.100.1"].map(str::to_owned).to_vec();
        let plan = LivePlan::named("servers-16").unwrap();
        fs::write(directory.join("chronyd"), "").unwrap();
        fs::write(directory.join("ntpd"), "").unwrap();
        for contestant in chosen(&["chronyd-relaxed", "chronyd-tuned", "ntpd-relaxed"].map(str::to_owned)).unwrap() {
            let post = Post { directory: &directory, servers: servers(), plan, peers: &directory };
            contestant.prepare(&post, 12.5).unwrap();
            let text = fs::read_to_string(directory.join("configuration")).unwrap();
            let polls = if contestant.is_relaxed { "minpoll 4 maxpoll 10" } else { "minpoll 4 maxpoll 4" };
            let is_asked = |server: &String| text.contains(&format!("server {server} iburst {polls}"));
            assert!(servers().iter().all(is_asked) && text.matches("driftfile").count() == 1, "{text}");
        }
        let text = of_each_server(include_str!("configurations/ffclockd.toml"), &servers());
        assert_eq!(text.matches("[[server]]").count(), 2, "{text}");
        assert!(servers().iter().all(|server| text.contains(&format!("address = \"{server}\""))), "{text}");
        let ptp = of_each_server(include_str!("configurations/ffclockd-ptp.toml"), &servers());
        assert_eq!(ptp.matches("[[server]]").count(), 1, "there is one master: {ptp}");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn ffclockd_remembers_the_rate_of_its_oscillator_and_what_it_learned_since() {
        let directory = std::env::temp_dir().join(format!("ffclock-live-rate-{}", std::process::id()));
        let nominal = Period::from_hertz(1e9).unwrap();
        let store = rate_store(&directory);
        remember_rate(&directory, 12.5).unwrap();
        let kept = store.load(nominal).unwrap().expect("a rate");
        // A fast counter has a short period.
        assert!((kept.period.relative_to(nominal).as_ppm() + 12.5).abs() < 0.001, "{kept:?}");
        let learned = RateMemory { bound: Rate::from_ppm(0.25), ..kept };
        store.save(learned).unwrap();
        remember_rate(&directory, 12.5).unwrap();
        assert_eq!(store.load(nominal).unwrap(), Some(learned));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn followers_of_ptp_listen_on_their_device_and_need_the_master() {
        let directory = std::env::temp_dir().join(format!("ffclock-live-followers-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let plan = LivePlan::named("quiet-16").unwrap();
        let post = Post { directory: &directory, servers: vec!["192.0.2.1".to_owned()], plan, peers: &directory };
        let of = |program| CONTESTANTS.iter().filter(move |one| one.program == program && one.behind.is_none());
        let followers = || of(ContestantProgram::Ptp4l).chain(of(ContestantProgram::Ptpd));
        fs::write(directory.join("ptpd"), "").unwrap();
        assert!(followers().all(|one| one.prepare(&post, 50.0).is_err()), "there is no ptp4l");
        fs::write(directory.join("ptp4l"), "").unwrap();
        for contestant in followers() {
            contestant.prepare(&post, 50.0).unwrap();
            let text = fs::read_to_string(directory.join("configuration")).unwrap();
            assert!(text.contains(CONTESTANT_END) && !text.contains('{'), "{text}");
            assert!((contestant.frequency_left(50.0) + 50e-6).abs() < 1e-12 && contestant.follows_master());
        }
        assert_eq!(followers().count(), 4);
        let command = master_command(&post, &["a0".to_owned(), "a1".to_owned()]).unwrap();
        let text = fs::read_to_string(command.last().unwrap()).unwrap();
        assert!(text.ends_with("[a0]\n[a1]\n") && text.contains("logSyncInterval 4\n"), "{text}");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn an_unknown_contestant_is_refused() {
        assert_eq!(chosen(&["sundial".to_owned()]).unwrap_err().code, Failure::USAGE);
        assert!(chosen(&[]).unwrap().iter().all(|one| one.behind.is_none()));
    }
}

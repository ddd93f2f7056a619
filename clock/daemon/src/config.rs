//! The configuration: TOML text in; a [`Config`], or a list of all its problems, out.
//!
//! Each option is declared once, in the crate that uses it (`ffclock_units::options!`). Here a TOML table only finds
//! the struct that knows the key. An unknown key is an error.

mod check;
mod estimator;
mod host;
mod lookup;
mod places;
mod polls;
mod protection;
mod ptp;
mod reader;
mod reference;
mod values;
mod vote;

pub use estimator::{EstimatorConfig, Which};
pub use ffclock_service::{DeviceName, DeviceStamps, MessageInterval};
pub use host::server_of_command_line;
pub use lookup::{AddressFamily, LookUpConfig, PoolConfig, PoolVotes};
pub use places::{NoPlace, Surroundings};
pub use polls::{KeptNoise, PollConfig};
pub use protection::{KeyChoice, NtsBootstrap, ProtectionConfig, Requirement, ServerProtection};
pub use ptp::{DelayChoice, GrandmasterChoice, Protocol, PtpConfig, TimescaleChoice, Transport};
pub(crate) use ptp::{EVENT_PORT, GENERAL_PORT, PtpPlace};
pub use reference::{EdgeChoice, ReferenceConfig, ReferenceInput, ScaleChoice};
pub use values::{
    CounterChoice, FilePath, HostAsymmetry, HostName, KernelClockUse, LoopbackAddress, StampChoice, Switchable,
    Unrecognised,
};
pub use vote::{PublishedBound, Quorum, ServerVote, Tolerance, VoteConfig};

pub use ffclock_service::{ConfigError, LONGEST_TEXT, MOST_PROBLEMS, Problem};
use ffclock_source::SourceConfig;
use ffclock_sys::places::{CALIBRATION, CONTROL, PAGE, STATE, VM_CLOCK};
use ffclock_units::{OptionDoc, OptionError, Span};
use reader::Reader;
use std::fmt;

ffclock_units::options! {
    /// Options of the daemon as a whole.
    pub struct DaemonConfig {
        /// The counter to keep time with. `auto` takes the CPU's counter where it can be trusted, otherwise the
        /// kernel's raw clock. On FreeBSD there are `tsc` and the kernel's own, `module:active`.
        counter: CounterChoice = CounterChoice(ffclock_counter::Choice::Auto);
        /// Where packets are stamped: in user space, by the kernel through the socket, or, in addition to that, by the
        /// raw counter at the boundary to the driver. `trace` uses the kernel's tracepoints and needs tracefs; `module`
        /// needs the kernel module ffcounter. `hardware` adds the stamps of the network card by its own clock, which is
        /// never set or steered; it needs the right to read /dev/ptpN.
        stamps: StampChoice = StampChoice::Kernel;
        /// What may be done to the network devices for `stamps = "hardware"`: with `leave`, a card is used whose stamps
        /// are on; with `switch-on`, they are switched on where they are off, for all programs, and stay so. That needs
        /// the capability CAP_NET_ADMIN.
        device_stamps: DeviceStamps = DeviceStamps::Leave;
        /// This host's own delays: with `calibrated`, those that `ffclock-lab probe calibrate` measured are taken off
        /// the stamps.
        asymmetry: HostAsymmetry = HostAsymmetry::Unknown;
        /// The file in which `ffclock-lab probe calibrate` keeps what it measured.
        calibration: FilePath = FilePath::fixed(CALIBRATION);
        /// What to do with the feed-forward clock that FreeBSD's kernel can keep (`options FFCLOCK`): with `drive`, it
        /// is handed the published estimate every 16 s. The counter must be the kernel's own then, `module:active`,
        /// which `auto` chooses.
        kernel_clock: KernelClockUse = KernelClockUse::Leave;
        /// The page of shared memory that readers map. For a user who may not write there it is
        /// `$XDG_RUNTIME_DIR/ffclock/page`, unless this key names another place.
        page: FilePath = FilePath::fixed(PAGE);
        /// The control socket. For a user who may not write there it is beside the page.
        control: Switchable<FilePath> = Switchable::On(FilePath::fixed(CONTROL));
        /// The directory in which the rate of the counter is remembered across restarts. For a user who may not write
        /// there it is `$XDG_STATE_HOME/ffclock` or `~/.local/state/ffclock`.
        state: Switchable<FilePath> = Switchable::On(FilePath::fixed(STATE));
        /// A directory for recorded exchanges, one trace file for each server and start.
        record: Switchable<FilePath> = Switchable::Off;
        /// The file of symmetric keys, as chrony and ntpd keep them: a number, a type and a value in each line. Others
        /// must have no right to it.
        keys: Switchable<FilePath> = Switchable::Off;
        /// Which clock says whether certificates for NTS are valid: with `"refuse"` the system clock, and no keys are
        /// established while it was clearly never set; with `"quorum"` the published clock, once servers without NTS
        /// make a quorum.
        nts_bootstrap: NtsBootstrap = NtsBootstrap::Refuse;
        /// Where to serve metrics (OpenMetrics text over HTTP) and the live page. Only loopback addresses are accepted.
        metrics: Switchable<LoopbackAddress> = Switchable::Off;
        /// The VMClock of the virtual machine that this host is: it shows that the machine was restored from a
        /// snapshot, migrated or copied. Programs that read the page look at it as well. Where there is none, only a
        /// jump of the counter or the servers' answers show it.
        vm_clock: Switchable<FilePath> = Switchable::On(FilePath::fixed(VM_CLOCK));
        /// How long a published estimate may be believed without a sign of life from the daemon.
        valid_for: Span = Span::from_secs(64), Span::from_secs(2) => Span::from_secs(86_400);
    }
}

ffclock_units::options! {
    /// The address of a server.
    pub struct ServerAddress {
        /// The server's name or address, without its port; each server of NTP has this or `pool`. A name is looked up
        /// again when the server stops answering, and every `look_up_every`.
        address: HostName = HostName::unset();
        /// The server's UDP port.
        port: u16 = 123, 1 => u16::MAX;
    }
}

impl ServerAddress {
    /// Whether both certainly mean the same server: an address can be written in several ways, and a name in either
    /// case.
    fn is_same_as(&self, other: &ServerAddress) -> bool {
        let literal = |address: &ServerAddress| address.address.as_str().parse::<std::net::IpAddr>().ok();
        let same = match (literal(self), literal(other)) {
            (Some(one), Some(another)) => one == another,
            _ => self.address.as_str().eq_ignore_ascii_case(other.address.as_str()),
        };
        same && self.port == other.port && !self.address.is_unset()
    }
}

impl fmt::Display for ServerAddress {
    /// The address as configured, with the port where it is not the usual one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, port) = (self.address.as_str(), self.port);
        match (port == ServerAddress::default().port, address.contains(':')) {
            (true, _) => f.write_str(address),
            (false, true) => write!(f, "[{address}]:{port}"),
            (false, false) => write!(f, "{address}:{port}"),
        }
    }
}

/// One configured server: where it is, how to talk to it, how to judge it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ServerConfig {
    /// Address and port; of a pool's servers, with the pool's name.
    pub address: ServerAddress,
    /// The pool that it belongs to, if its name is set.
    pub pool: PoolConfig,
    /// Its number in the pool, from 1; `None` outside of pools.
    pub slot: Option<u32>,
    /// What it is, if it is no server but a reference at this host.
    pub reference: Option<ReferenceConfig>,
    /// How it speaks, and which masters are heard if that is PTP.
    pub ptp: PtpConfig,
    /// How its addresses are found.
    pub look_up: LookUpConfig,
    /// What protects the conversation with it.
    pub protection: ServerProtection,
    /// Its part in the vote.
    pub vote: ServerVote,
    /// Options of the conversation with it.
    pub source: SourceConfig,
    /// Options of its estimator.
    pub estimator: EstimatorConfig,
}

/// The whole configuration.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Config {
    /// Options of the daemon as a whole.
    pub daemon: DaemonConfig,
    /// What protects the vote.
    pub protection: ProtectionConfig,
    /// How the servers vote.
    pub vote: VoteConfig,
    /// What polls are chosen for.
    pub polls: PollConfig,
    /// The servers in the order in which they stand in the file, and after them the references, which count as such.
    pub servers: Vec<ServerConfig>,
}

/// The most servers: each has a socket, an estimator of 0.9 MiB, and a part of the common clock that grows with their
/// number, up to 1.8 MiB of 16.
pub const MOST_SERVERS: usize = 16;
impl Config {
    /// Sets a key at the top of the file in the struct that knows it.
    fn set(&mut self, name: &str, text: &str) -> Result<(), OptionError> {
        match self.daemon.set(name, text) {
            Err(OptionError::Unknown) => {}
            known => return known,
        }
        match self.protection.set(name, text) {
            Err(OptionError::Unknown) => {}
            known => return known,
        }
        match self.vote.set(name, text) {
            Err(OptionError::Unknown) => self.polls.set(name, text),
            known => known,
        }
    }

    /// Reads a configuration.
    ///
    /// # Errors
    /// All problems found, each with its line.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(text, &[])
    }

    /// Reads a configuration, and adds servers that the command line names.
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn parse_with(text: &str, servers: &[ServerAddress]) -> Result<Self, ConfigError> {
        let mut reader = Reader::new(text);
        let config = reader.config(servers);
        reader.end(config)
    }

    /// As [`Config::parse_with`], and looks whether something stands in the way of the files that the daemon makes. The
    /// daemon itself goes on without a record or a memory; an operator who asks for a check wants to know.
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn check(text: &str, servers: &[ServerAddress]) -> Result<Self, ConfigError> {
        let mut reader = Reader::new(text);
        let config = reader.config(servers);
        if let Some(config) = &config {
            reader.report(check::obstacles(config));
            reader.report_devices(config);
        }
        reader.end(config)
    }
}

/// Shows every option with the section it belongs to: "" for the top, "source" and "estimator" for defaults of all
/// servers and keys of a `[[server]]`, "server" for keys of a `[[server]]` alone, "reference" for those of a
/// `[[reference]]` alone.
pub fn describe_all(visit: &mut dyn FnMut(&str, OptionDoc<'_>)) {
    DaemonConfig::describe(&mut |doc| visit("", doc));
    VoteConfig::describe(&mut |doc| visit("", doc));
    ProtectionConfig::describe(&mut |doc| visit("", doc));
    PollConfig::describe(&mut |doc| visit("", doc));
    ServerAddress::describe(&mut |doc| visit("server", doc));
    ServerProtection::describe(&mut |doc| visit("server", doc));
    ServerVote::describe(&mut |doc| visit("server", doc));
    PtpConfig::describe(&mut |doc| visit("ptp", doc));
    ReferenceConfig::describe(&mut |doc| visit("reference", doc));
    LookUpConfig::describe(&mut |doc| visit("server", doc));
    SourceConfig::describe(&mut |doc| visit("source", doc));
    // After `poll`, which is the one that is meant by a word that resembles both.
    PoolConfig::describe(&mut |doc| visit("server", doc));
    EstimatorConfig::describe(&mut |doc| visit("estimator", doc));
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_estimator::Algorithm;

    const SMALL: &str = "[[server]]\naddress = \"192.0.2.1\"\n";

    fn problems(text: &str) -> Vec<(usize, String)> {
        let error = Config::parse(text).unwrap_err();
        error.problems.into_iter().map(|problem| (problem.line, problem.message)).collect()
    }

    #[test]
    fn the_smallest_configuration_is_one_server() {
        let config = Config::parse(SMALL).unwrap();
        assert_eq!(config.servers.len(), 1);
        assert_eq!(config.servers[0].address.address.as_str(), "192.0.2.1");
        assert_eq!(config.servers[0].address.port, 123);
        assert_eq!(config.daemon, DaemonConfig::default());
    }

    #[test]
    fn sections_give_defaults_and_a_server_overrides_them() {
        let text = "[source]\npoll = \"4 s\"\n[estimator]\nasymmetry = \"3 us\"\n\
                    [[server]]\naddress = \"a.example\"\n[[server]]\naddress = \"b.example\"\npoll = \"8 s\"\nasymmetry = \"-5 us\"\n";
        let config = Config::parse(text).unwrap();
        assert_eq!(config.servers[0].source.poll, Span::from_secs(4));
        assert_eq!(config.servers[0].estimator.options.asymmetry, Span::from_micros(3));
        assert_eq!(config.servers[1].source.poll, Span::from_secs(8));
        assert_eq!(config.servers[1].estimator.options.asymmetry, Span::from_micros(-5));
    }

    #[test]
    fn the_learned_estimator_is_taken_unless_another_is_named() {
        let which = |text: &str| {
            let config = Config::parse(text).unwrap();
            config.servers.iter().map(|server| server.estimator.which.estimator).collect::<Vec<_>>()
        };
        let two = format!("{SMALL}[[server]]\naddress = \"192.0.2.2\"\nestimator = \"classic\"\n");
        assert_eq!(which(&two), [Algorithm::Learned, Algorithm::Classic]);
        let globally = "estimator = \"classic\"\n".to_owned() + &two;
        assert_eq!(which(&globally), [Algorithm::Classic, Algorithm::Classic]);
        let table = "[estimator]\nestimator = \"classic\"\nwander = \"1 ppm\"\n".to_owned() + SMALL;
        assert_eq!(which(&table), [Algorithm::Classic]);
        assert_eq!(Config::parse(&table).unwrap().servers[0].estimator.options.wander.as_ppm(), 1.0);
        assert!(problems(&format!("estimator = \"chrony\"\n{SMALL}"))[0].1.contains("\"classic\" or \"learned\""));
        assert!(problems(&format!("estimator = 3\n{SMALL}"))[0].1.contains("must be a table"));
    }

    #[test]
    fn parts_of_the_learned_estimator_are_left_out_in_the_laboratory_only() {
        for part in ["cycles", "reinitialisation"] {
            let (line, message) = problems(&format!("[estimator]\n{part} = false\n{SMALL}")).remove(0);
            assert_eq!(line, 2);
            assert!(message.starts_with(&format!("{part} = false: ")) && message.contains("--without"), "{message}");
        }
        describe_all(&mut |section, doc| assert_ne!((section, doc.name), ("estimator", "cycles")));
    }

    #[test]
    fn every_problem_is_named_with_its_line() {
        let found = problems("pagee = \"/x\"\nstamps = \"moon\"\n[[server]]\naddress = \"a b\"\npoll = 16\n");
        assert_eq!(found[0], (1, "unknown key `pagee`: is `page` meant?".to_owned()));
        assert_eq!(found[1].0, 2);
        assert!(found[1].1.contains("\"kernel\", \"user\""), "{found:?}");
        assert!(found.iter().any(|(line, text)| *line == 4 && text.contains("host name")), "{found:?}");
        assert!(found.iter().any(|(line, text)| *line == 5 && text.contains("span with its unit")), "{found:?}");
    }

    #[test]
    fn what_is_not_toml_or_not_a_clock_is_refused() {
        assert!(problems("[[server]\n")[0].0 >= 1);
        assert!(problems("")[0].1.contains("no [[server]]"));
        assert!(problems("server = 3\n")[0].1.contains("[[server]]"));
        assert!(problems("[[server]]\nport = 123\n")[0].1.contains("no address"));
        assert!(problems(&format!("metrics = \"192.0.2.1:80\"\n{SMALL}"))[0].1.contains("loopback"));
        let many: String = (0..=MOST_SERVERS).map(|n| format!("[[server]]\naddress = \"s{n}.example\"\n")).collect();
        assert_eq!(problems(&many), [(2 * MOST_SERVERS + 1, "more than 16 servers".to_owned())]);
        assert!(problems(&" ".repeat(LONGEST_TEXT + 1))[0].1.contains("1 MiB"));
    }

    #[test]
    fn a_key_that_is_there_twice_is_named_with_its_remedy() {
        let [twice] = &problems(&format!("valid_for = \"8 s\"\n{SMALL}port = 1\nport = 2\n"))[..] else { panic!() };
        assert_eq!(*twice, (5, "the key `port` is there twice: keep one of the two".to_owned()));
        let both = format!("estimator = \"classic\"\n\n[estimator]\nasymmetry = \"3 us\"\n{SMALL}");
        let [both] = &problems(&both)[..] else { panic!() };
        assert_eq!(both.0, 3);
        assert!(both.1.starts_with("the key `estimator` is there twice: "), "{}", both.1);
        assert!(both.1.contains("write the line `estimator = ...` below its heading"), "{}", both.1);
        let [table] = &problems(&format!("{SMALL}[source]\npoll = \"4 s\"\n[source]\n"))[..] else { panic!() };
        assert_eq!(*table, (5, "the key `source` is there twice: keep one of the two".to_owned()));
    }

    #[test]
    fn a_server_that_is_configured_twice_is_a_mistake() {
        for (one, another) in
            [("192.0.2.1", "192.0.2.1"), ("ntp.example", "NTP.example"), ("2001:db8::1", "2001:db8:0::1")]
        {
            let text = format!("[[server]]\naddress = \"{one}\"\n[[server]]\naddress = \"{another}\"\n");
            assert_eq!(problems(&text), [(3, format!("the server {another} is configured twice"))]);
            let other_port = Config::parse(&format!("{text}port = 1123\n")).unwrap();
            assert_eq!(other_port.servers.len(), 2);
        }
    }

    #[test]
    fn a_server_is_called_as_it_is_configured() {
        let named = |address: &str, port| ServerAddress { address: address.parse().unwrap(), port }.to_string();
        assert_eq!(named("ntp.example", 123), "ntp.example");
        assert_eq!(named("ntp.example", 1123), "ntp.example:1123");
        assert_eq!(named("::1", 123), "::1");
        assert_eq!(named("::1", 1123), "[::1]:1123");
    }

    fn sock(path: &str) -> String {
        format!("[[reference]]\ninput = \"sock:{path}\"\nerror = \"1 us\"\n")
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_key_and_line() {
        let long = format!("/tmp/{}", "x".repeat(108));
        for (text, line, said) in [
            (format!("{SMALL}port = 0\n"), 3, "port = 0: the value must lie between 1 and 65535"),
            (format!("{SMALL}port = 99999\n"), 3, "port = 99999: the value must be a whole number from 1 to 65535"),
            (format!("{SMALL}poll = \"50 ms\"\n"), 3, "poll = \"50 ms\": the value must lie between 125 ms and 1024 s"),
            (format!("\n{SMALL}[[server]]\naddress = \"ntp:123\"\n"), 5, "address = \"ntp:123\": the port has a key"),
            (format!("\n{SMALL}[[server]]\naddress = \"0.0.0.0\"\n"), 5, "no host in particular"),
            (format!("page = \"/a/b\"\ncontrol = \"/a//b\"\n{SMALL}"), 2, "page and control are one path"),
            (format!("control = \"{PAGE}\"\n{SMALL}"), 1, "page and control are one path"),
            (format!("keys = \"{PAGE}\"\n{SMALL}"), 1, "page and keys are one path"),
            (
                format!("page = \"/a/b\"\ncontrol = \"/a/b.history\"\n{SMALL}"),
                2,
                "the history beside page and control are one path",
            ),
            (format!("state = \"/a/b\"\npage = \"/a/b\"\n{SMALL}"), 2, "page and state are one path"),
            (format!("page = \"/a/b\"\nstate = \"/a/./b/c\"\n{SMALL}"), 2, "state lies below page, which is a file"),
            (format!("page = \"/a/b/\"\n{SMALL}"), 1, "this names a directory"),
            (format!("page = \"/dev/v\"\nvm_clock = \"/dev/v\"\n{SMALL}"), 2, "page and vm_clock are one path"),
            (format!("record = \"/dev/vmclock0\"\n{SMALL}"), 1, "record and vm_clock are one path"),
            (format!("page = \"/a\"\n{SMALL}nts_ca = \"/a\"\n"), 2, "page and nts_ca are one path"),
            (format!("keys = \"/a\"\n{SMALL}nts = true\nnts_ca = \"/a\"\n"), 2, "keys and nts_ca are one path"),
            (format!("page = \"/a\"\n{SMALL}nts_ca = \"/a/b\"\n"), 2, "nts_ca lies below page, which is a file"),
            (format!("control = \"/a\"\n{SMALL}{}", sock("/a")), 4, "control and the socket of [[reference]] are"),
            (format!("{SMALL}{}", sock("/a/")), 3, "this names a directory"),
            (
                format!("page = \"/dev/ptp3\"\n{SMALL}[[reference]]\ninput = \"phc:/dev/ptp3\"\nerror = \"1 us\"\n"),
                4,
                "page and the device of [[reference]] are one path",
            ),
            (format!("control = \"{long}\"\n{SMALL}"), 1, "too long for a socket"),
            (format!("pol = 3\n{SMALL}"), 1, "unknown key `pol`: is `poll` meant?"),
            (format!("pool = \"a\"\n{SMALL}"), 1, "unknown key `pool`: it belongs below [[server]]"),
            (format!("{SMALL}server ntp.example iburst\n"), 3, "a server is `[[server]]`"),
        ] {
            let found = problems(&text);
            assert!(found.len() == 1 && found[0].0 == line && found[0].1.contains(said), "{said}: {found:?}");
        }
        let shared = format!("state = \"/a/b\"\nrecord = \"/a/b\"\n{SMALL}");
        assert!(Config::parse(&shared).is_ok(), "names in them differ");
        let machine = format!("{SMALL}[[reference]]\ninput = \"vmclock:/dev/vmclock0\"\nerror = \"1 us\"\n");
        assert!(Config::parse(&machine).is_ok(), "both only read it");
        let authorities = |path: &str| format!("nts = true\nnts_ca = \"{path}\"\n");
        let two = format!("{SMALL}{}[[server]]\naddress = \"other\"\n{}", authorities("/a"), authorities("//a"));
        assert!(Config::parse(&two).is_ok(), "one file of authorities serves several servers");
        assert!(Config::parse(&format!("control = \"/tmp/{}\"\n{SMALL}", "x".repeat(90))).is_ok());
    }

    #[test]
    fn a_bad_address_is_told_once() {
        let found = problems("[[server]]\naddress = \"a b\"\n");
        assert!(found.len() == 1 && found[0].1.contains("host name"), "{found:?}");
    }

    #[test]
    fn a_check_looks_at_what_is_there() {
        let directory = std::env::temp_dir().join(format!("ffclockd-check-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("file"), "").unwrap();
        let place = directory.display();
        for (key, path, said) in [
            ("page", format!("{place}/file/page"), "is not a directory"),
            ("page", format!("{place}"), "what is there is not a regular file"),
            ("control", format!("{place}/file"), "what is there is not a socket"),
            ("record", format!("{place}/file"), "what is there is not a directory"),
        ] {
            let text = format!("\n{key} = \"{path}\"\n{SMALL}");
            assert!(Config::parse(&text).is_ok(), "the daemon says so itself, or goes on without");
            let error = Config::check(&text, &[]).unwrap_err();
            assert_eq!(error.problems[0].line, 2);
            assert!(error.to_string().contains(key) && error.to_string().contains(said), "{error}");
        }
        for (text, said) in [
            (format!("{SMALL}nts = true\nnts_ca = \"{place}\"\n"), "what is there is not a regular file"),
            (format!("{SMALL}{}", sock(&format!("{place}/file"))), "what is there is not a socket"),
            (format!("{SMALL}{}", sock(&format!("{place}/file/a"))), "file is not a directory"),
        ] {
            assert!(Config::parse(&text).is_ok());
            let error = Config::check(&text, &[]).unwrap_err();
            assert!(error.problems.len() == 1 && error.to_string().contains(said), "{error}");
        }
        let fine = format!("page = \"{place}/new/page\"\ncontrol = \"{place}/new/control\"\n{SMALL}");
        assert!(Config::check(&fine, &[]).is_ok(), "missing directories are made");
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_command_line_names_servers_too() {
        let named = |names: &[&str]| -> Vec<ServerAddress> {
            names.iter().map(|name| server_of_command_line(name).unwrap()).collect()
        };
        let config = Config::parse_with("[source]\npoll = \"4 s\"\n", &named(&["time.example", "::1"])).unwrap();
        assert_eq!(config.servers.len(), 2);
        assert_eq!(config.servers[1].source.poll, Span::from_secs(4));
        assert_eq!(Config::parse_with(SMALL, &named(&["time.example"])).unwrap().servers.len(), 2);
        let twice = Config::parse_with(SMALL, &named(&["192.0.2.1"])).unwrap_err();
        assert_eq!(twice.to_string(), "--server: the server 192.0.2.1 is configured twice");
        let names: Vec<String> = (0..=MOST_SERVERS).map(|number| format!("s{number}.example")).collect();
        let many: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(Config::parse_with("", &named(&many)).unwrap_err().to_string(), "--server: more than 16 servers");
    }

    /// Every block of TOML in the documents of the daemon.
    #[test]
    fn what_the_documents_show_is_accepted() {
        let documents = [
            include_str!("../../../docs/operations.md"),
            include_str!("../../../docs/events.md"),
            include_str!("../../../docs/configuration.md"),
            include_str!("../../../docs/freebsd.md"),
            include_str!("../../../docs/ptp.md"),
        ];
        let mut shown = 0;
        for block in documents.iter().flat_map(|document| document.split("```toml\n").skip(1)) {
            let text = block.split("```").next().unwrap();
            assert_eq!(Config::parse(text).map(|_| ()), Ok(()), "{text}");
            shown += 1;
        }
        assert!(shown >= 3, "{shown}");
        assert!(Config::parse(include_str!("../../../packaging/ffclockd.toml")).is_ok());
    }

    #[test]
    fn a_file_full_of_mistakes_gets_a_short_answer() {
        let long = "k".repeat(100_000);
        let text: String = (0..1000).map(|n| format!("{long}{n} = 1\n")).take(9).collect::<String>()
            + &(0..1000).map(|n| format!("k{n} = 1\n")).collect::<String>();
        let error = Config::parse(&text).unwrap_err();
        assert_eq!(error.problems.len(), MOST_PROBLEMS);
        assert!(error.to_string().len() < 4000, "{}", error.to_string().len());
    }

    #[test]
    fn every_option_is_described() {
        let mut names = Vec::new();
        describe_all(&mut |section, doc| names.push(format!("{section}/{}", doc.name)));
        for expected in ["/counter", "server/address", "source/poll", "estimator/estimator", "estimator/asymmetry"] {
            assert!(names.iter().any(|name| name == expected), "{expected} missing in {names:?}");
        }
    }
}

//! The host around the daemon: its configuration, its rights and room, its unit, the kernel's clock and who steers it.

use super::catalogue::{self as fault, Diagnosis};
use super::host::{HostFiles, HostProcess, ask_program, daemon_program};
use crate::text;
use ffclock_control::protocol::StatusReport;
use ffclock_sys::places;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Programs that steer the system clock, by the names that the kernel keeps of them.
const STEERING: &[&str] = &["chronyd", "ntpd", "ntp-daemon", "systemd-timesyn", "phc2sys", "ffclock-steer"];
/// Clocksources that are slow to read; the kernel takes them when it does not trust the CPU's counter.
const SLOW: &[&str] = &["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"];
/// With less room a page, a remembered rate or a recording may not find any [bytes].
const LEAST_ROOM: u64 = 1 << 20;
/// A unit that systemd started again this often keeps ending.
const RESTARTS: u64 = 3;
/// Unless it has run for this long since [s].
const CALM_S: f64 = 86_400.0;
/// The server of the shipped configuration.
const EXAMPLE: &str = "\"ntp.example.org\"";

/// What is looked at beside the page and the daemon's answer.
pub(crate) struct HostView<'a> {
    /// The host's files.
    pub(crate) files: &'a HostFiles,
    /// The configuration, where it is on the host.
    pub(crate) config: &'a Path,
    /// The page, where it is for us.
    pub(crate) page: &'a Path,
    /// What the daemon answered, if it did.
    pub(crate) report: Option<&'a StatusReport>,
    /// Whether there is one, here or on the host of this container.
    pub(crate) has_daemon: bool,
}

/// What is wrong around the daemon.
pub(crate) fn examine(view: &HostView<'_>) -> Vec<Diagnosis> {
    let processes = view.files.processes();
    let text = view.files.read(view.config);
    let mut found = configuration(view, text.as_deref());
    found.extend(text.as_deref().and_then(|text| keys(view.files, text)));
    found.extend(directories(view, text.as_deref().unwrap_or_default(), &processes));
    found.extend(clocksource(view.files));
    found.extend(guest(view.files, text.as_deref().unwrap_or_default()));
    found.extend(steering(view.files, &processes));
    found.extend(daemons(&processes));
    found.extend(unit(view));
    found
}

fn configuration(view: &HostView<'_>, text: Option<&str>) -> Vec<Diagnosis> {
    let place = view.files.place(view.config);
    let name = place.display();
    let Some(about) = view.files.about(view.config) else {
        // A daemon that answers got its servers on the command line.
        return Vec::from_iter((!view.has_daemon).then(|| fault::CONFIG_MISSING.seen(format!("{name} is not there"))));
    };
    if !about.is_file() {
        return vec![fault::CONFIG_WRONG.seen(format!("{name} is not a regular file"))];
    }
    // Of one that this user may not read, ffclockd says that it cannot be read.
    let unread_here = || fault::CONFIG_UNCHECKED.seen(format!("{name} may not be read by this user"));
    let mut found = Vec::from_iter(if text.is_some() { checked(&place) } else { Some(unread_here()) });
    let is_example = text.is_some_and(|text| text.lines().any(|line| is_setting(line) && line.contains(EXAMPLE)));
    if is_example {
        found.push(fault::CONFIG_EXAMPLE.seen(format!("{name} names {EXAMPLE}")));
    }
    found.extend(unread(view, about.modified().ok()));
    found.extend(text.and_then(|text| unmet(text, view.report)));
    found
}

/// What ffclockd says of its configuration.
fn checked(place: &Path) -> Option<Diagnosis> {
    let answer = daemon_program()
        .and_then(|program| ask_program(program.to_str()?, &["--check-config", "--config", place.to_str()?]));
    match answer {
        Some(answer) if answer.is_well => None,
        Some(answer) => Some(fault::CONFIG_WRONG.seen(text::printable(answer.text.trim()))),
        None => Some(fault::CONFIG_UNCHECKED.seen("ffclockd was not found, or did not answer --check-config in time")),
    }
}

/// A configuration that was changed after the daemon had read it.
fn unread(view: &HostView<'_>, changed: Option<SystemTime>) -> Option<Diagnosis> {
    let report = view.report?;
    let reloads = report.events.iter().filter(|event| event.text.starts_with("the configuration was read again"));
    let read_at_s = reloads.map(|event| event.at_s).fold(0.0, f64::max);
    let ago = Duration::try_from_secs_f64(report.uptime_s - read_at_s).ok()?;
    let read = SystemTime::now().checked_sub(ago)?;
    let late = changed?.duration_since(read).ok().filter(|late| *late > Duration::from_secs(2))?;
    let seen = format!("it was changed {} after the daemon had read it", text::duration(late.as_secs_f64()));
    Some(fault::CONFIG_UNREAD.seen(seen))
}

/// Servers whose vote `require` takes. A configuration that takes votes by `no_select` as well says nothing of them.
fn unmet(config: &str, report: Option<&StatusReport>) -> Option<Diagnosis> {
    let required = setting(config, "require").filter(|kind| kind != "nothing")?;
    if config.lines().any(|line| is_setting(line) && line.contains("no_select")) {
        return None;
    }
    let silenced = report?.sources.iter().filter(|source| source.vote.no_select);
    let names: Vec<&str> = silenced.map(|source| source.name.as_str()).collect();
    (!names.is_empty())
        .then(|| fault::REQUIRE_UNMET.seen(text::printable(&format!("require = \"{required}\": {}", names.join(", ")))))
}

fn keys(files: &HostFiles, config: &str) -> Option<Diagnosis> {
    let path = setting(config, "keys")?;
    let mode = files.about(&path)?.permissions().mode() & 0o7777;
    (mode & 0o007 != 0).then(|| fault::KEYS_READABLE.seen(format!("{path} has the mode {mode:04o}")))
}

/// Room and rights where the daemon writes.
fn directories(view: &HostView<'_>, config: &str, processes: &[HostProcess]) -> Vec<Diagnosis> {
    let named = |key| setting(config, key).filter(|value| value != "off").map(PathBuf::from);
    let state = named("state").unwrap_or_else(|| places::STATE.into());
    let writes = [view.page.parent().map(Path::to_owned), Some(view.files.place(&state))];
    let record = named("record").map(|record| view.files.place(record));
    let mut found: Vec<Diagnosis> = Vec::new();
    for directory in writes.into_iter().chain([record]).flatten() {
        let room = HostFiles::below(Path::new("/")).room(&directory);
        let free =
            room.map(|room| (room.f_bavail.saturating_mul(room.f_frsize), room.f_files > 0 && room.f_favail == 0));
        found.extend(free.and_then(|free| full(&directory, free)));
    }
    let user = processes.iter().find(|process| process.name == "ffclockd").and_then(|process| process.user);
    let owner = view.files.about(&state).map(|about| about.uid());
    if let (Some(user), Some(owner)) = (user, owner)
        && user != 0
        && owner != user
    {
        let seen = format!("{} belongs to user {owner}, and ffclockd runs as {user}", state.display());
        found.push(fault::STATE_RIGHTS.seen(seen));
    }
    found
}

/// A file system without room: the free bytes, and whether no file can be made for want of inodes.
fn full(directory: &Path, (bytes, has_no_inode): (u64, bool)) -> Option<Diagnosis> {
    let lack = if has_no_inode { "no inode".to_owned() } else { format!("{bytes} bytes") };
    (bytes < LEAST_ROOM || has_no_inode)
        .then(|| fault::DISK_FULL.seen(format!("the file system of {} has {lack} left", directory.display())))
}

fn clocksource(files: &HostFiles) -> Option<Diagnosis> {
    const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let current = files.read(CURRENT).unwrap_or_default();
    if SLOW.contains(&current.trim()) {
        return Some(fault::CLOCKSOURCE_SLOW.seen(format!("the kernel's clocksource is {}", current.trim())));
    }
    let processor = files.read("/proc/cpuinfo")?;
    let flags = processor.lines().find(|line| line.starts_with("flags"))?;
    let is_constant = flags.split_ascii_whitespace().any(|flag| flag == "constant_tsc");
    (!is_constant).then(|| fault::TSC_INCONSTANT.seen("/proc/cpuinfo has no flag constant_tsc"))
}

/// A virtual machine whose restores can be seen by servers only. The processor says so in a flag.
fn guest(files: &HostFiles, config: &str) -> Option<Diagnosis> {
    let described = files.read("/proc/cpuinfo")?;
    let flags = described.lines().find(|line| line.starts_with("flags"))?;
    let clock = setting(config, "vm_clock").unwrap_or_else(|| places::VM_CLOCK.to_owned());
    let is_unwatched = clock != "off" && files.about(&clock).is_none();
    let is_guest = flags.split_ascii_whitespace().any(|flag| flag == "hypervisor");
    (is_guest && is_unwatched)
        .then(|| fault::GUEST_UNWATCHED.seen(format!("this is a virtual machine, and {clock} is not there")))
}

fn steering(files: &HostFiles, processes: &[HostProcess]) -> Option<Diagnosis> {
    let is_steering = |process: &&HostProcess| {
        let line = files.read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        let arguments: Vec<&str> = line.split('\0').skip(1).collect();
        STEERING.contains(&process.name.as_str()) && !leaves_the_system_clock(&process.name, &arguments)
    };
    let mut names: Vec<&str> = processes.iter().filter(is_steering).map(|process| process.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    (names.len() > 1).then(|| fault::STEERED_TWICE.seen(format!("{} run on this host", names.join(" and "))))
}

/// Whether a program that can steer the system clock does something else, by its arguments.
fn leaves_the_system_clock(name: &str, arguments: &[&str]) -> bool {
    let has = |wanted: &str| arguments.contains(&wanted);
    match name {
        "chronyd" => has("-x"),
        "ffclock-steer" => has("--dry-run"),
        // It sets the clock of -c, which is the system's where none is named, or with -a what -r permits.
        "phc2sys" => {
            let slave = arguments.iter().position(|argument| *argument == "-c").and_then(|at| arguments.get(at + 1));
            match slave {
                Some(clock) => *clock != "CLOCK_REALTIME",
                None => has("-a") && !has("-r") && !has("-rr"),
            }
        }
        _ => false,
    }
}

fn daemons(processes: &[HostProcess]) -> Vec<Diagnosis> {
    let ours: Vec<&HostProcess> = processes.iter().filter(|process| process.name == "ffclockd").collect();
    let mut found = Vec::new();
    if ours.len() > 1 {
        let pids: Vec<String> = ours.iter().map(|process| process.pid.to_string()).collect();
        found.push(fault::DAEMON_TWICE.seen(format!("ffclockd runs as the processes {}", pids.join(", "))));
    }
    let seen = |process: &HostProcess| format!("process {}", process.pid);
    found.extend(ours.iter().find(|process| process.user == Some(0)).map(|root| fault::DAEMON_ROOT.seen(seen(root))));
    found.extend(
        ours.iter()
            .find(|process| process.nice > 0)
            .map(|slow| fault::DAEMON_NICE.seen(format!("{} has the nice value {}", seen(slow), slow.nice))),
    );
    found
}

fn unit(view: &HostView<'_>) -> Option<Diagnosis> {
    view.files.about("/run/systemd/system").filter(|about| about.is_dir())?;
    let properties = "--property=LoadState,ActiveState,NRestarts,UnitFileState,Result";
    let answer = ask_program("systemctl", &["show", "ffclockd.service", properties])?;
    let value = |name: &str| answer.text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    if value("LoadState=") != "loaded" {
        return None;
    }
    let restarts: u64 = value("NRestarts=").parse().unwrap_or(0);
    if value("ActiveState=") == "failed" {
        Some(fault::UNIT_FAILED.seen(format!("its result is {}", value("Result="))))
    } else if restarts >= RESTARTS && view.report.is_none_or(|report| report.uptime_s < CALM_S) {
        Some(fault::UNIT_RESTARTS.seen(format!("systemd has started it again {restarts} times")))
    } else {
        (value("UnitFileState=") == "disabled").then(|| fault::UNIT_DISABLED.seen("the unit is not enabled"))
    }
}

fn is_setting(line: &str) -> bool {
    !line.trim_start().starts_with('#')
}

/// The text that the configuration gives a key at its top. ffclockd reads it in full; this is enough to find files.
pub(crate) fn setting(config: &str, key: &str) -> Option<String> {
    let top = config.lines().take_while(|line| !line.trim_start().starts_with('['));
    let values = top.filter_map(|line| line.trim().strip_prefix(key)?.trim_start().strip_prefix('='));
    values.filter_map(|value| value.trim().strip_prefix('"')?.split('"').next().map(str::to_owned)).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_system_is_named() {
        let found = |free| full(Path::new("/run/ffclock"), free).map(|found| found.seen);
        assert_eq!(found((1 << 30, false)), None);
        assert!(found((4096, false)).is_some_and(|seen| seen.contains("/run/ffclock has 4096 bytes left")));
        assert!(found((1 << 30, true)).is_some_and(|seen| seen.contains("no inode left")));
    }

    #[test]
    fn who_steers_the_system_clock_is_in_the_arguments() {
        let leaves = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            leaves_the_system_clock(words[0], &words[1..])
        };
        for line in [
            "chronyd -x",
            "chronyd -F 1 -x",
            "ffclock-steer --dry-run",
            "phc2sys -s CLOCK_REALTIME -c eth0 -O 37",
            "phc2sys -a",
        ] {
            assert!(leaves(line), "{line}");
        }
        for line in
            ["chronyd -F 1", "ffclock-steer", "phc2sys -s eth0 -w", "phc2sys -a -r", "phc2sys -c CLOCK_REALTIME"]
        {
            assert!(!leaves(line), "{line}");
        }
    }

    #[test]
    fn settings_are_read_at_the_top_only() {
        let config = "# state = \"/no\"\nstate = \"/a\" # here\nkeys=\"k\"\n[source]\nrecord = \"/b\"\n";
        assert_eq!([setting(config, "state"), setting(config, "keys")], [Some("/a".into()), Some("k".into())]);
        assert_eq!(setting(config, "record"), None);
    }
}

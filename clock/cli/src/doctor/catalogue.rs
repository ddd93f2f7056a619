//! Everything that `ffclock doctor` can find, in one place: how bad it is, why it matters and what to do.
//!
//! What was seen on the host is added where a check finds it. Each entry is seeded and found in
//! `tests/command/doctor.rs`; docs/events.md says more about the events behind some of them.

use serde::Serialize;

/// How bad a finding is; the worst decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// The time is right, and something about it is worse than it should be, or soon will be.
    Warning,
    /// Programs have no time, or not that of the daemon, or cannot rely on its bound.
    Error,
}

impl Severity {
    /// The name for people.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A fault that is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct HostCheck {
    /// Its name, which stays the same from version to version.
    pub(crate) check: &'static str,
    /// How bad it is.
    pub(crate) severity: Severity,
    /// Why it matters.
    pub(crate) matters: &'static str,
    /// What to do about it.
    pub(crate) remedy: &'static str,
}

/// A fault that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Diagnosis {
    /// Which one.
    #[serde(flatten)]
    pub(crate) of: HostCheck,
    /// The server that it concerns, if any.
    pub(crate) server: Option<String>,
    /// What was seen on this host.
    pub(crate) seen: String,
}

impl HostCheck {
    /// This fault, as it was seen here.
    pub(crate) fn seen(self, seen: impl Into<String>) -> Diagnosis {
        Diagnosis { of: self, server: None, seen: seen.into() }
    }
}

/// Makes a constant of each fault, and the list of all.
macro_rules! faults {
    ($($constant:ident = $check:literal: $severity:ident, $matters:literal, $remedy:literal;)+) => {
        $(
            pub(crate) const $constant: HostCheck = HostCheck {
                check: $check, severity: Severity::$severity, matters: $matters, remedy: $remedy,
            };
        )+

        /// Every fault that is looked for.
        pub(crate) const ALL: &[HostCheck] = &[$($constant),+];
    };
}

faults! {
    PAGE_MISSING = "page-missing": Error, "no program on this host can read the clock",
        "start ffclockd, or name its page with --page or FFCLOCK_PAGE";
    PAGE_RIGHTS = "page-rights": Error, "this user cannot read the clock",
        "give the page the mode 0644 and its directory 0755";
    PAGE_FOREIGN = "page-foreign": Error, "another file stands where the page should be, and no program can read the clock",
        "name ffclockd's own page; `ffclock status` shows where it is. Leave the file alone if it is yours";
    PAGE_HOLE = "page-hole": Error, "the page is not stored in full, and a program that read it would be killed",
        "make room in its file system, then restart ffclockd";
    PAGE_VERSION = "page-version": Error, "readers refuse a page of another version",
        "install ffclockd and the programs that read its page from one version, then restart ffclockd";
    PAGE_OTHER_BOOT = "page-other-boot": Error, "its counter readings mean nothing since the machine was started again",
        "start ffclockd";
    PAGE_DAMAGED = "page-damaged": Error, "readers refuse a damaged page",
        "restart ffclockd, and find the program that writes into the page";
    PAGE_COUNTER = "page-counter": Error, "the page is about a counter that this user cannot read",
        "set `counter = \"auto\"`, or load the kernel module ffcounter and give rights to /dev/ffcounter";
    PAGE_STALE = "page-stale": Error, "nothing has renewed the page within its date, so readers call it unsynchronised",
        "start ffclockd, and read its log for the reason that it stopped";
    PAGE_WRITABLE = "page-writable": Error, "a program that may write the page can mislead all of its readers",
        "take the right to write from all but the daemon's user: chmod 0644 for the page, 0755 for its directory";
    PAGE_HIDDEN = "page-hidden": Warning, "programs of other users cannot read the clock",
        "chmod 0644 for the page, 0755 for its directory; the unit needs UMask=0022 and no DynamicUser=";
    PAGE_OTHER = "page-other": Warning, "programs that look here do not read the clock of the daemon that answers",
        "name the daemon's page with --page or FFCLOCK_PAGE, or remove `page` from the configuration";
    HISTORY_MISSING = "history-missing": Warning, "old stamps are converted by the newest line, with a wider bound",
        "make room for 772 KiB beside the page and let the daemon's user write there";
    DAEMON_ABSENT = "daemon-absent": Error, "without a daemon the bound only grows, and then the clock is unsynchronised",
        "start it: systemctl enable --now ffclockd";
    DAEMON_ELSEWHERE = "daemon-elsewhere": Note, "a daemon outside of this container renews the page, and more than the page says is not known of it here",
        "run this where ffclockd runs, or show this container its control socket beside the page";
    DAEMON_DEAD = "daemon-dead": Error, "the daemon was killed: the bound only grows, and then the clock is unsynchronised",
        "start it again, and look in the log for the reason: journalctl -u ffclockd";
    DAEMON_STUCK = "daemon-stuck": Error, "a daemon that is stopped or stuck renews nothing",
        "restart it; with the shipped unit the watchdog does so after two minutes";
    DAEMON_ROOT = "daemon-root": Note, "it needs no privilege, and root's rights make an intrusion worse",
        "run it as the user ffclock, as the shipped unit does";
    DAEMON_NICE = "daemon-nice": Warning, "a daemon of low priority answers late, and stamps of user space are late as well",
        "remove Nice= and CPUSchedulingPolicy= from the unit";
    DAEMON_TWICE = "daemon-twice": Warning, "each has a page and asks servers; programs may read either",
        "stop the one that is not wanted";
    CONTROL_FOREIGN = "control-foreign": Error, "the daemon cannot make its control socket there",
        "remove what is there if no other program needs it, or name another place with `control`";
    CONTROL_RIGHTS = "control-rights": Warning, "the state of the daemon cannot be asked by this user",
        "give its directory the mode 0755, or run this as the user of the daemon";
    ANSWER_FOREIGN = "answer-foreign": Error, "what listens on the control socket is not an ffclockd of this version",
        "install ffclock and ffclockd from one version, then restart ffclockd";
    VERSIONS_DIFFER = "versions-differ": Warning, "an upgrade is complete only when the daemon has been started again",
        "systemctl try-restart ffclockd";
    CONFIG_MISSING = "config-missing": Error, "the daemon does not start without a configuration or servers on its command line",
        "put [[server]] tables into it, or run `ffclockd -s NAME`";
    CONFIG_WRONG = "config-wrong": Error, "the next start or reload refuses it",
        "correct what is named; `ffclockd --check-config` says the same";
    CONFIG_UNCHECKED = "config-unchecked": Note, "mistakes in the configuration were not looked for",
        "put ffclockd into PATH";
    CONFIG_EXAMPLE = "config-example": Error, "the server of the shipped file is an example and does not exist",
        "put servers into the configuration: one, or at least three";
    CONFIG_UNREAD = "config-unread": Warning, "the daemon still runs with what it read before",
        "ffclock reload";
    CONFIG_REFUSED = "config-refused": Warning, "the old configuration stays in force, and the next start fails",
        "correct the configuration, then `ffclock reload`";
    CONFIG_WAITS = "config-waits": Note, "what was changed at the top of the configuration is not in force yet",
        "systemctl restart ffclockd";
    KEYS_READABLE = "keys-readable": Error, "a symmetric key that others can read lets them forge the time; ffclockd refuses the file",
        "chmod 0600, or 0640 with the daemon's group";
    CLOCKSOURCE_SLOW = "clocksource-slow": Warning, "the kernel does not trust the CPU's counter, and reading the clock takes a microsecond",
        "look for `clocksource` and `tsc` in the kernel's log; update the firmware, or give the guest an invariant TSC";
    TSC_INCONSTANT = "tsc-inconstant": Note, "the CPU does not promise a constant counter, so the kernel's clock serves in its place",
        "nothing, or pass invariant TSC on to the guest";
    GUEST_UNWATCHED = "guest-unwatched": Note, "a virtual machine does not see that it was restored or copied: its time is wrong until servers contradict it",
        "give it a VMClock (docs/events.md); with three servers it is noticed sooner; `vm_clock = \"off\"` says that it is never restored";
    STEERED_TWICE = "steered-twice": Warning, "programs that steer one system clock undo each other's work, and stamps of the kernel become wider",
        "keep one of them";
    SYSTEM_CLOCK_OFF = "system-clock-off": Warning, "ffclockd never sets the system clock: programs that read it are wrong, and certificates may seem to have ended",
        "run chronyd beside it, or find out why the program that steers the system clock does not";
    STATE_RIGHTS = "state-rights": Warning, "the rate is not remembered, and each start takes minutes longer to warm up",
        "give the directory to the daemon's user: chown ffclock";
    DISK_FULL = "disk-full": Error, "the page, the remembered rate or recordings cannot be made there",
        "make room; old recordings can go (docs/operations.md has a line for systemd-tmpfiles)";
    UNIT_FAILED = "unit-failed": Error, "systemd has given up starting the daemon",
        "journalctl -u ffclockd says why; then systemctl reset-failed ffclockd && systemctl start ffclockd";
    UNIT_RESTARTS = "unit-restarts": Warning, "it ends again and again, and each start has to warm up",
        "journalctl -u ffclockd says why";
    UNIT_DISABLED = "unit-disabled": Warning, "there will be no clock after the next boot",
        "systemctl enable ffclockd";
    CLOCK_UNSET = "clock-unset": Error, "programs get an error instead of a time",
        "look at the findings about servers; a first answer is enough";
    HOLDOVER = "holdover": Warning, "the bound grows on the counter alone",
        "look at the findings about servers";
    WARMING_UP = "warming-up": Warning, "half an hour after the start the rate still rests on little data",
        "ask more often (`poll`), and look for lost replies";
    BOUND_LARGE = "bound-large": Warning, "programs may need a smaller bound than this one",
        "take servers that are nearer or claim less error, or ask more often; --bound says from where on it counts as large";
    LEAP_ODD = "leap-odd": Warning, "leap seconds exist at the end of June and December: a false one puts UTC off by a second",
        "compare with IERS Bulletin C, and remove the servers that announce it";
    LEAP_DISPUTED = "leap-disputed": Warning, "the clock follows the majority, which may be wrong about the last minute of the month",
        "compare with IERS Bulletin C";
    LEAP_TWICE = "leap-twice": Error, "one run of the daemon takes in one leap second",
        "restart ffclockd before it";
    NO_MAJORITY = "no-majority": Error, "no server is followed: the clock is in holdover, or was never set",
        "`ffclock sources --why` shows which servers contradict each other; remove the false ones or add others";
    TOO_FEW = "too-few": Error, "fewer servers answer than min_servers demands, and none is followed",
        "look at the findings about servers, or lower min_servers";
    PUBLISHED_OUTSIDE = "published-outside": Warning, "the selected server and the others prove times that exclude each other; the bound covers both",
        "`ffclock sources --why` shows how far it is off; remove the one that is wrong, or add servers";
    ONE_SERVER = "one-server": Note, "it is believed alone, whatever it says",
        "configure at least three";
    TWO_SERVERS = "two-servers": Warning, "two that contradict each other have no majority",
        "configure one, or at least three";
    SERVER_SILENT = "server-silent": Warning, "it never answered: a packet filter, a wrong address or a server that serves others only",
        "let UDP to its port (123) and the answers pass; try it with another NTP client";
    SERVER_UNREACHABLE = "server-unreachable": Warning, "it has stopped answering and counts less and less",
        "look at the network and at the server; another address is tried by itself";
    SERVER_LOOPS = "server-loops": Warning, "it follows this host, so that its time is ours and says nothing",
        "have it follow other servers too, or remove it here";
    SERVER_UNRESOLVED = "server-unresolved": Warning, "its name has no address that can be used, so it is not asked",
        "correct the name or `family`; look at /etc/resolv.conf and at the way to the resolver";
    PTP_CLOSED = "ptp-closed": Warning, "its ports or its network device cannot be had, so no master of PTP is heard",
        "the event says why: UDP ports 319 and 320 take CAP_NET_BIND_SERVICE (docs/ptp.md has the drop-in), or `interface` is not there";
    PTP_SILENT = "ptp-silent": Warning, "no master of PTP gives time that can be used",
        "look at the reasons: `root-distance` wants `accuracy_unclaimed`, `arbitrary-timescale` wants `arbitrary_timescale`; without any, at `domain`, `interface` and the network";
    REFERENCE_UNREAD = "reference-unread": Warning, "a clock at this host cannot be read, so it has no vote",
        "the event says why: the device or the segment is not there, or the daemon's user may not read it (docs/references.md has the drop-in of the unit)";
    REFERENCE_SILENT = "reference-silent": Warning, "a clock at this host gives nothing that can be used",
        "look at the aerial, the cable and the program that writes (gpsd, phc2sys); docs/references.md explains the reasons";
    REFERENCE_REFUSED = "reference-refused": Warning, "most samples of a clock at this host cannot be used",
        "docs/references.md explains the reasons";
    REFERENCE_NOISY = "reference-noisy": Warning, "pulses are too many or too few, or samples come too fast: what is in doubt is left out",
        "look for noise on the line, for another `edge`, and for a second program that writes";
    REFERENCE_SLIPPED = "reference-slipped": Warning, "its seconds begin elsewhere than they did, or than those of the published clock",
        "look at the receiver, at `edge` and at `delay`, and compare it with servers";
    REFERENCE_STEPPED = "reference-stepped": Warning, "another program sets the hardware clock again and again, and samples around each step are lost",
        "look at the program that keeps it on time (phc2sys, ts2phc, ptp4l): only one may";
    REFERENCE_COUNTER = "reference-counter": Warning, "the host's VMClock is about another counter than this machine has, and is not used",
        "state the difference on the host: ffclock feed --vmclock FILE --counter-offset TICKS";
    SERVER_REFUSES = "server-refuses": Warning, "it asked not to be asked again, and is not",
        "take another server";
    SERVER_SLOWED = "server-slowed": Warning, "it asked to be asked less often, so its poll is longer than configured",
        "configure a longer poll, or a server of your own";
    FALSETICKER = "falseticker": Warning, "the majority contradicts it: its claim about itself is false",
        "ask its operator, or remove it";
    UNDECIDED = "undecided": Warning, "it contradicts another server, and the rest cannot say which of the two is right",
        "add servers, or bring those back that do not answer";
    SUSPECT = "suspect": Warning, "its time is further off than its path and its claim explain: it has no weight",
        "look at the path to it (a longer way in one direction), then state `asymmetry`, or remove it";
    SERVER_JUMPED = "server-jumped": Warning, "its time jumped, or our counter's rate did; it is not believed for now",
        "with one server: wait for step_patience, or add servers. If all jump, the counter is unsuitable";
    SERVER_TWICE = "server-twice": Warning, "two names of one address have one vote",
        "remove one, and take a server of another operator";
    PACKETS_REFUSED = "packets-refused": Warning, "most packets with its address are no replies: another host may send in its name",
        "look at the reasons; a middle box that rewrites NTP is a usual one";
    SERVER_UNAUTHENTICATED = "server-unauthenticated": Warning, "others are authenticated, this one is not: who can rewrite its packets has a vote",
        "set `nts = true` or `key` for it, or `require = \"authenticated\"`";
    REQUIRE_UNMET = "require-unmet": Warning, "`require` takes its vote, because nothing of the demanded kind authenticates it",
        "set `nts = true` for it, or remove it";
    NTS_CERTIFICATE = "nts-certificate": Warning, "once it has ended, no keys can be established with this server",
        "its operator has to renew it; look at the system clock if it seems to have ended long ago";
    NTS_NO_KEYS = "nts-no-keys": Error, "nothing is asked of this server before keys are established",
        "let TCP to port 4460 pass; check the name, the authority (`nts_ca`) and the system clock";
    KEY_UNUSABLE = "key-unusable": Error, "nothing is asked of this server without its symmetric key",
        "put the key into the file that `keys` names, with a type that is taken (AES128, SHA256)";
    ESTIMATORS_DISAGREE = "estimators-disagree": Note, "a route changed in one direction, or the path was congested from the start; the bound holds both",
        "nothing, or `estimator = \"classic\"` if it lasts";
    STAMPS_USER = "stamps-user": Warning, "the delays of the process are in every stamp",
        "look for a driver with software transmit stamps: ethtool -T DEVICE";
    STAMPS_BOUNDARY = "stamps-boundary": Warning, "stamps = \"trace\" or \"module\" was asked for and is not to be had",
        "load the module or give the rights (docs/kernel.md has the drop-ins), or set stamps = \"kernel\"";
    STAMPS_CARD = "stamps-card": Warning, "stamps = \"hardware\" was asked for, and the kernel stamps in place of the network card",
        "the event names the remedy: `device_stamps`, the right to read /dev/ptpN, or a card that can (docs/hardware.md)";
    CARD_CHANGED = "card-changed": Note, "another program sets or steers the clock of the network card; around each step the kernel's stamps serve",
        "nothing, or end it (phc2sys, ptp4l) if the card is meant for ffclockd alone";
    STATE_UNWRITTEN = "state-unwritten": Warning, "the next start takes minutes longer to warm up",
        "look at rights and room of the directory `state`; remove a damaged file in it";
    RECORD_STOPPED = "record-stopped": Warning, "exchanges are no longer recorded",
        "look at rights and room of the directory `record`, then restart ffclockd";
    HISTORY_UNMADE = "history-unmade": Warning, "old stamps are converted by the newest line, with a wider bound",
        "make room for 772 KiB beside the page, and remove another file of that name";
    FILES_REMOVED = "files-removed": Warning, "something cleans up the daemon's directory, and programs lose the clock each time",
        "look for a second unit with the same RuntimeDirectory=, or a rule of systemd-tmpfiles";
    COUNTER_BROKEN = "counter-broken": Warning, "each break ends an epoch, and stamps from before are refused",
        "on a machine that is not suspended: set `counter = \"monotonic-raw\"`";
    KERNEL_CLOCK = "kernel-clock": Warning, "programs that read FreeBSD's feed-forward clock do not get this time",
        "the event says why: usually root's rights are missing (docs/freebsd.md)";
    CALIBRATION_MISSING = "calibration-missing": Warning, "asymmetry = \"calibrated\" was asked for, and stamps stay where they were taken",
        "measure again: ffclock-lab probe calibrate";
    NO_RANDOM = "no-random": Error, "any host could answer a request without a secret, so nothing is asked",
        "look at the sandbox of the daemon: getrandom(2) fails";
    CANNOT_SEND = "cannot-send": Warning, "requests do not leave this host",
        "look at the network, the packet filter and the limit of descriptors";
    ASYMMETRY_WRONG = "asymmetry-wrong": Warning, "`asymmetry_error` is too small or `asymmetry` is wrong; it was left out",
        "measure it again, or remove both";
    NOMINAL_LEFT = "nominal-left": Warning, "the counter is further from its nominal rate than `nominal_error` allows",
        "raise `nominal_error`, or set `counter = \"monotonic-raw\"`";
    WANDER_RAISED = "wander-raised": Warning, "the counter's rate moves more than `wander` allows, so the bound was widened",
        "raise `wander` in [estimator], or look at the machine's temperature";
}

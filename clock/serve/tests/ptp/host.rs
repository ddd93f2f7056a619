//! Followers on the other host, and what they say.

use crate::hosts::{Other, Process, ip};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(40);

impl Other {
    /// The other host, with a way for the multicast of followers that name no device.
    pub fn with_multicast() -> Other {
        let other = Other::join();
        other.run("ip route add 224.0.0.0/4 dev theirs0");
        other
    }

    /// Both ends have addresses of IPv6, of use at once; `false` where the kernel knows none.
    pub fn has_ipv6(&self) -> bool {
        let six = "/proc/sys/net/ipv6/conf";
        if !Path::new(six).exists() {
            return false;
        }
        for device in ["all", "ours0"] {
            let _ = std::fs::write(format!("{six}/{device}/disable_ipv6"), "0");
        }
        ip("address add fd81::1/64 dev ours0 nodad");
        self.run(&format!("echo 0 > {six}/theirs0/disable_ipv6 && ip address add fd81::2/64 dev theirs0 nodad"));
        true
    }

    /// ptp4l there, with these options and this configuration; it steers no clock, and says its offset each second.
    pub fn follower(&self, options: &str, configuration: &str) -> Follower {
        let options = format!("{options} --logMinPdelayReqInterval -2 --summary_interval -2 --freq_est_interval 0");
        Follower::start(self.ptp4l(&options, configuration))
    }

    /// ptpd there as a follower, which adjusts no clock and says its offset.
    pub fn ptpd(&self) -> Follower {
        let file = self.scratch.join("ptpd.conf");
        let here = self.scratch.display();
        let text = format!(
            "ptpengine:interface=theirs0\nptpengine:preset=slaveonly\nptpengine:ip_mode=multicast\nclock:no_adjust=y\n\
             clock:no_reset=y\nglobal:log_status=y\nglobal:status_file={here}/ptpd.status\n\
             global:lock_file={here}/ptpd.lock\nglobal:foreground=y\nglobal:use_libpcap=n\n\
             ptpengine:log_delayreq_interval=-2\nptpengine:log_sync_interval=-2\n\
             global:statistics_file={here}/ptpd.statistics\nglobal:log_statistics=y\nglobal:verbose_foreground=y\n"
        );
        std::fs::write(&file, text).expect("a file");
        let mut command = self.command("ptpd");
        command.arg("-c").arg(file);
        Follower::start(command)
    }
}

/// A follower on the other host, and what it says.
pub struct Follower {
    process: Process,
    said: Receiver<String>,
    /// Where ptp4l answers pmc.
    uds: Option<PathBuf>,
    log: Vec<String>,
}

impl Follower {
    fn start(mut command: Command) -> Follower {
        let uds = command.get_args().skip_while(|word| *word != "--uds_address").nth(1).map(PathBuf::from);
        command.stderr(Stdio::null());
        let mut process = Process::start(command, Stdio::piped());
        let (heard, said) = channel();
        let output = process.0.stdout.take().expect("a pipe");
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.all(|line| heard.send(line).is_ok())
        });
        Follower { process, said, uds, log: Vec::new() }
    }

    /// The first answer of `find` about a line that it says from now on.
    pub fn wait_for<T>(&mut self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        while let Ok(line) = self.said.recv_timeout(end.saturating_duration_since(Instant::now())) {
            let found = find(&line);
            self.log.push(line);
            if let Some(found) = found {
                return found;
            }
        }
        panic!("{what}: {}", self.log.join("\n"));
    }

    /// Forgets what it has said until now.
    pub fn forget(&mut self) {
        self.log.extend(self.said.try_iter());
    }

    /// ptp4l's next offset from its master [ns].
    pub fn offset_ns(&mut self) -> i64 {
        self.forget();
        self.wait_for("an offset", |line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let at = words.iter().position(|word| *word == "offset").filter(|at| words[at - 1] == "master")?;
            words.get(at + 1)?.parse().ok()
        })
    }

    /// What ptp4l knows of its grandmaster: a field of its parent data set, asked for by pmc.
    pub fn parent(&self, field: &str) -> Option<String> {
        let uds = self.uds.as_ref()?;
        let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
        let peers = std::env::var_os("FFCLOCK_PEERS").map_or_else(built, PathBuf::from);
        let mut command = Command::new("timeout");
        command.arg("5").arg(peers.join("linuxptp/usr/sbin/pmc")).args(["-u", "-b", "0", "-i"]);
        command.arg(uds.with_extension("pmc")).arg("-s").arg(uds).arg("GET PARENT_DATA_SET");
        let output = command.output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|line| line.trim().strip_prefix(field).map(str::trim))?;
        Some(line.to_owned())
    }

    /// Waits until ptp4l knows this of its grandmaster.
    pub fn wait_for_parent(&self, field: &str, wanted: &str) {
        let end = Instant::now() + PATIENCE;
        while self.parent(field).as_deref() != Some(wanted) {
            assert!(Instant::now() < end, "{field} {wanted}, and is {:?}", self.parent(field));
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The number of its process, to see that it runs.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

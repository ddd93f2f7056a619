//! Daemons of other projects as clients. The page is wrong by a tenth of a second, so that following it shows:
//! ntpd-rs steps the clock for that.

use crate::common::{Place, Said, Serving};
use crate::session::{certify, establishing_at, with_nts};
use crate::{is_in_a_namespace, peer};
use ffclock_units::Span;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The page's time - truth [ms].
const WRONG_MS: f64 = 100.0;

/// A foreign daemon with its log; killed when dropped.
struct Following {
    child: Child,
    log: PathBuf,
}

impl Following {
    fn start(command: &mut Command, log: &Path) -> Self {
        let file = File::create(log).unwrap();
        let child = command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Following { child, log: log.to_owned() }
    }

    /// Waits until this file or the log shows what is wanted.
    fn wait_for<T>(&mut self, file: &Path, serving: &Serving, wanted: impl Fn(&str) -> Option<T>) -> T {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let text = fs::read_to_string(file).unwrap_or_default();
            if let Some(found) = wanted(&text) {
                return found;
            }
            let is_over = Instant::now() > end || self.child.try_wait().unwrap().is_some();
            let log = || fs::read_to_string(&self.log).unwrap_or_default();
            assert!(!is_over, "{text}\n{}\n{}", log(), serving.status());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn said() -> Said {
    Said { error: Span::from_millis(WRONG_MS as i64), ..Said::within(Span::from_millis(150)) }
}

/// At an address that no interface has, though it is local: ntpd-rs takes a server at one of its own for a loop, unless
/// that is of stratum 1.
fn elsewhere(more: &str) -> String {
    format!("listen = \"10.0.0.1:4123\"\n{more}")
}

/// ntpd-rs with this source: its step of the clock, as it believes [ms].
fn step_of_ntpd_rs(daemon: &Path, place: &Place, serving: &Serving, source: &str) -> f64 {
    let (config, log) = (place.directory.join("ntp.toml"), place.directory.join("ntpd-rs.log"));
    let text = format!(
        "[observability]\nlog-level = \"info\"\n[synchronization]\nminimum-agreeing-sources = 1\n\
         [source-defaults]\npoll-interval-limits = {{ min = 0, max = 4 }}\ninitial-poll-interval = 0\n\
         [[source]]\n{source}\n"
    );
    fs::write(&config, text).unwrap();
    let mut following = Following::start(Command::new(daemon).arg("--config").arg(&config), &log);
    following.wait_for(&log, serving, |text| {
        let (_, rest) = text.split_once("Jumped offset by ")?;
        rest.split_once("ms")?.0.parse().ok()
    })
}

#[test]
fn ntpd_rs_follows_the_server() {
    if !is_in_a_namespace("peers::ntpd_rs_follows_the_server") {
        return;
    }
    let Some(daemon) = peer("ntp-daemon") else { return };
    let place = Place::new();
    place.publish(&mut place.writer(), said());
    let serving = place.serve(&elsewhere(""));
    let source = format!("mode = \"server\"\naddress = \"{}\"", serving.address);
    let step = step_of_ntpd_rs(&daemon, &place, &serving, &source);
    assert!((step - WRONG_MS).abs() < 20.0, "{step}");
    assert!(serving.count("answered") > 0);
}

#[test]
fn ntpd_rs_establishes_keys_and_follows_the_server() {
    if !is_in_a_namespace("peers::ntpd_rs_establishes_keys_and_follows_the_server") {
        return;
    }
    let Some(daemon) = peer("ntp-daemon") else { return };
    let place = Place::new();
    place.publish(&mut place.writer(), said());
    certify(&place);
    let serving = place.serve(&elsewhere(&with_nts(&place, "ntp_host = \"10.0.0.1:4123\"")));
    let source = format!(
        "mode = \"nts\"\naddress = \"127.0.0.1:{}\"\ncertificate-authority = \"{}/chain.pem\"",
        establishing_at(&serving).port(),
        place.directory.display()
    );
    let step = step_of_ntpd_rs(&daemon, &place, &serving, &source);
    assert!((step - WRONG_MS).abs() < 20.0, "{step}");
    assert!(serving.count("nts_answered") > 0);
    assert_eq!(serving.count("nts_answered"), serving.count("answered"), "nothing was asked without protection");
}

/// NTPsec's ntpd wants port 123, so it has a namespace. Its log of peers says whom it selects (the fourth hexadecimal
/// digit of RFC 9327's status: 6) and how far off it is.
#[test]
fn ntpsec_establishes_keys_and_follows_the_server() {
    if !is_in_a_namespace("peers::ntpsec_establishes_keys_and_follows_the_server") {
        return;
    }
    let Some(ntpd) = peer("ntpd") else { return };
    let place = Place::new();
    place.publish(&mut place.writer(), said());
    certify(&place);
    let serving = place.serve(&with_nts(&place, ""));
    let (here, port) = (place.directory.display(), establishing_at(&serving).port());
    let text = format!(
        "server -4 localhost:{port} nts ca {here}/chain.pem minpoll 0 maxpoll 0 iburst\ndisable ntp\n\
         disable kernel\nstatsdir {here}/\nfilegen peerstats file peers type none enable\ndriftfile {here}/drift\n"
    );
    let config = place.directory.join("ntp.conf");
    fs::write(&config, text).unwrap();
    let mut command = Command::new(ntpd);
    let mut following = Following::start(command.arg("-n").arg("-c").arg(&config), &place.directory.join("ntpd.log"));
    let offset_s = following.wait_for(&place.directory.join("peers"), &serving, |peers| {
        peers.lines().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let status = u16::from_str_radix(words.get(3)?, 16).ok()?;
            (status >> 8 & 7 == 6).then(|| words.get(4)?.parse::<f64>().ok())?
        })
    });
    assert!((offset_s * 1e3 - WRONG_MS).abs() < 20.0, "{offset_s}");
    assert!(serving.count("nts_answered") > 0);
    assert_eq!(serving.count("nts_answered"), serving.count("answered"), "nothing was asked without protection");
}

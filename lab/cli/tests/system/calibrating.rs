//! A host that is slow in one direction: its delay is measured by `ffclock-lab probe calibrate` on the daemon's own
//! packets and taken off the daemon's stamps.
//!
//! The instrument also reports how far the clock is off: the clock of the daemon's exchanges against the clock of the
//! same packets stamped at the driver, so that neither the way to the server nor the server, nor another daemon's luck,
//! is in the figure. One daemon runs at a time: two that ask at the same moment wake each other.
//!
//! FFCLOCK_HOST_DELAY_NS sets another delay than the 800 us of the test, which are large against what waking up takes
//! on a busy machine; FFCLOCK_HOST_SECONDS how long each measurement takes, FFCLOCK_HOST_ROUNDS how often all of it is
//! done, uncalibrated and calibrated in turn. `tools/figures-probe bias` measures with them.

use super::{fresh_directory, programs, root};
use serde_json::Value;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn number_of(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// What every packet waits before it leaves [ns].
fn delay_ns() -> u64 {
    number_of("FFCLOCK_HOST_DELAY_NS", 800_000)
}

/// How long each measurement takes.
fn seconds() -> u64 {
    number_of("FFCLOCK_HOST_SECONDS", 12)
}

/// A child process, ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn(mut command: Command, log: &Path) -> Running {
    let output = std::fs::File::create(log).unwrap();
    command.stdin(Stdio::null()).stderr(output.try_clone().unwrap()).stdout(output);
    Running(command.spawn().unwrap())
}

/// The library that makes packets wait; `None` where there is no compiler.
fn delaying_library(directory: &Path) -> Option<PathBuf> {
    let library = directory.join("delay.so");
    let source = root().join("lab/cli/tests/system/delay.c");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(source).status();
    compiled.is_ok_and(|status| status.success()).then_some(library)
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server, and a place for files.
struct Laboratory {
    directory: PathBuf,
    library: PathBuf,
    port: u16,
    _server: Running,
}

impl Laboratory {
    /// `None` where there is no compiler.
    fn open() -> Option<Self> {
        let directory = fresh_directory("calibrating");
        let library = delaying_library(&directory)?;
        let port = free_port();
        let mut server = Command::new(programs::ffclock_lab());
        server.args(["lab", "server", "--listen", &format!("127.0.0.1:{port}")]);
        let server = spawn(server, &directory.join("server.log"));
        std::thread::sleep(Duration::from_millis(300));
        Some(Laboratory { directory, library, port, _server: server })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The daemon of the slow host.
    fn daemon(&self, name: &str, options: &str) -> Running {
        let text = format!(
            "counter = \"tsc\"\npage = \"{}\"\ncontrol = \"off\"\nstate = \"off\"\nrecord = \"{}\"\nstamps = \"user\"\n{options}\n\
             [[server]]\naddress = \"127.0.0.1\"\nport = {}\npoll = \"0.125 s\"\n",
            self.file(&format!("{name}.page")).display(),
            self.file(name).display(),
            self.port
        );
        let config = self.file(&format!("{name}.toml"));
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(programs::directory().join("ffclockd"));
        command.arg("--config").arg(config);
        command.env("LD_PRELOAD", &self.library).env("FFCLOCK_SEND_DELAY_NS", delay_ns().to_string());
        let running = spawn(command, &self.file(&format!("{name}.log")));
        // Past its first packets, which come in quick succession.
        std::thread::sleep(Duration::from_secs(5));
        running
    }

    /// What `ffclock-lab probe calibrate` says of a daemon's own packets.
    fn calibrate(&self, name: &str, options: &[&str]) -> Result<Value, String> {
        let mut command = Command::new(programs::ffclock_lab());
        command
            .args(["probe", "calibrate", "--json", "--for", &format!("{} s", seconds()), "--own"])
            .arg(self.file(name));
        command.arg("--file").arg(self.file("calibration.json")).args(options);
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(serde_json::from_slice(&output.stdout).unwrap()) } else { Err(error) }
    }

    /// A measurement that is interrupted writes nothing; `Err` where the kernel does not trace for us.
    fn interrupted(&self, name: &str) -> Result<(), String> {
        let file = self.file("interrupted.json");
        let mut command = Command::new(programs::ffclock_lab());
        command.args(["probe", "calibrate", "--for", "60 s", "--own"]).arg(self.file(name)).arg("--file").arg(&file);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(3));
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && !file.exists(), "{error}");
        if error.contains("the boundary to the driver cannot be seen") {
            return Err(error);
        }
        assert!(sent.unwrap().success() && error.contains("interrupted: nothing is written"), "{error}");
        Ok(())
    }

    /// How far the clock is off for the host's delays, without the calibration and with it [us]; `Err` where the kernel
    /// does not trace for us.
    fn round(&self, number: u64) -> Result<(f64, f64), String> {
        let bias_us = |said: &Value| said["bias_ns"].as_f64().unwrap() / 1e3;
        let edges = |said: &Value| {
            let edges = said["edges_ns"].as_array().unwrap();
            format!("{:.2}, {:.2}", edges[0].as_f64().unwrap() / 1e3, edges[1].as_f64().unwrap() / 1e3)
        };
        let (slow, unequal_us) = {
            let name = format!("slow-{number}");
            let _daemon = self.daemon(&name, "");
            if number == 1 {
                self.interrupted(&name)?;
            }
            let slow = self.calibrate(&name, &["--check"])?;
            let calibration = self.calibrate(&name, &[]).unwrap();
            assert_eq!(calibration[0]["events_lost"], 0, "{calibration}");
            assert!(calibration[0]["left_ns"].is_number() && calibration[0]["left_out"].is_number(), "{calibration}");
            (slow, calibration[0]["unequal_ns"].as_f64().unwrap() / 1e3)
        };
        let name = format!("calibrated-{number}");
        let options =
            format!("asymmetry = \"calibrated\"\ncalibration = \"{}\"", self.file("calibration.json").display());
        let _daemon = self.daemon(&name, &options);
        let calibrated = self.calibrate(&name, &["--check"]).unwrap();
        println!(
            "round {number}: edges (us) {}; calibration {unequal_us:.2}; calibrated {}; bias (us) {:.2}, {:.2}",
            edges(&slow),
            edges(&calibrated),
            bias_us(&slow),
            bias_us(&calibrated)
        );
        assert_eq!((&slow["is_calibrated"], &calibrated["is_calibrated"]), (&false.into(), &true.into()));
        let log = std::fs::read_to_string(self.file(&format!("{name}.log"))).unwrap();
        assert!(!log.contains("the host's delays are not known"), "{log}");
        let refused = self.calibrate(&name, &[]).unwrap_err();
        assert!(refused.contains("--check"), "what was moved is no measure of the host: {refused}");
        Ok((bias_us(&slow), bias_us(&calibrated)))
    }
}

/// The median: a round in which a clock lost its way does not count for more than it is.
fn median(values: Vec<f64>) -> f64 {
    ffclock_statistics::percentile(&values, 0.5).expect("there was a round")
}

#[test]
fn a_calibrated_daemon_is_not_biased_by_a_slow_host() {
    let Some(laboratory) = Laboratory::open() else { return println!("SKIP: no C compiler") };
    let (mut slow, mut calibrated) = (Vec::new(), Vec::new());
    for number in 1..=number_of("FFCLOCK_HOST_ROUNDS", 1) {
        match laboratory.round(number) {
            Err(said) if said.contains("the boundary to the driver cannot be seen") => return println!("SKIP: {said}"),
            other => {
                let (without, with) = other.unwrap();
                slow.push(without);
                calibrated.push(with);
            }
        }
    }
    let (slow, calibrated) = (median(slow), median(calibrated));
    println!("bias of the slow host {slow:.2} us, calibrated {calibrated:.2} us");
    let expected = delay_ns() as f64 / 2e3;
    assert!((slow - expected).abs() < 0.5 * expected, "half of the delay, and what the host does by itself: {slow} us");
    assert!(calibrated.abs() < slow.abs() / 10.0, "{calibrated} us of {slow} us");
}

//! A host that is slow in one direction: its delay is measured by `ffclock probe calibrate` and taken off the daemon's stamps.
//!
//! FFCLOCK_HOST_DELAY_NS sets another delay than the 800 us of the test, which are large against what waking up takes on a busy machine;
//! FFCLOCK_HOST_SECONDS how long the calibration and the clocks take. `tools/figures-probe bias` measures with both.

use super::{fresh_directory, programs, root};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What every packet waits before it leaves [ns].
fn delay_ns() -> String {
    std::env::var("FFCLOCK_HOST_DELAY_NS").unwrap_or_else(|_| "800000".to_owned())
}

/// How long the calibration takes, and how long the clocks have before they are compared.
fn seconds() -> u64 {
    std::env::var("FFCLOCK_HOST_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(12)
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
    let source = root().join("crates/cli/tests/system/delay.c");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(source).status();
    compiled.is_ok_and(|status| status.success()).then_some(library)
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A daemon of the slow host, or of a host without delay.
fn daemon(directory: &Path, name: &str, (options, server): (&str, u16), library: Option<&Path>) -> Running {
    let page = directory.join(format!("{name}.page"));
    let text = format!(
        "counter = \"tsc\"\npage = \"{}\"\ncontrol = \"off\"\nstate = \"off\"\n{options}\n[[server]]\naddress = \"127.0.0.1\"\n\
         port = {server}\npoll = \"0.125 s\"\n",
        page.display()
    );
    let config = directory.join(format!("{name}.toml"));
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(programs::directory().join("ffclockd"));
    command.arg("--config").arg(config);
    if let Some(library) = library {
        command.env("LD_PRELOAD", library).env("FFCLOCK_SEND_DELAY_NS", delay_ns());
    }
    spawn(command, &directory.join(format!("{name}.log")))
}

/// What a clock shows at a stamp [ns since 1970].
fn time_at(directory: &Path, name: &str, stamp: &str) -> Option<i128> {
    let page = directory.join(format!("{name}.page"));
    let mut command = Command::new(programs::ffclock());
    let output = command.args(["now", "--format", "unix", "--at", stamp, "--page"]).arg(page).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (seconds, nanos) = text.trim().split_once('.')?;
    Some(seconds.parse::<i128>().ok()? * 1_000_000_000 + nanos.parse::<i128>().ok()?)
}

/// How far a clock is ahead of the reference, median of some stamps [us].
fn bias_us(directory: &Path, name: &str) -> Option<f64> {
    let mut differences = Vec::new();
    for _ in 0..15 {
        let mut command = Command::new(programs::ffclock());
        let output = command.arg("stamp").arg("--page").arg(directory.join("reference.page")).output().unwrap();
        let stamp = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        differences.push(time_at(directory, name, &stamp)? - time_at(directory, "reference", &stamp)?);
        std::thread::sleep(Duration::from_millis(100));
    }
    differences.sort_unstable();
    Some(differences[differences.len() / 2] as f64 / 1e3)
}

#[test]
fn a_calibrated_daemon_is_not_biased_by_a_slow_host() {
    let directory = fresh_directory("calibrating");
    let Some(library) = delaying_library(&directory) else { return println!("SKIP: no C compiler") };
    let echo_port = free_port();
    let mut echo = Command::new(programs::ffclock());
    echo.args(["probe", "echo", "--listen", &format!("127.0.0.1:{echo_port}")]);
    let _echo = spawn(echo, &directory.join("echo.log"));
    std::thread::sleep(Duration::from_millis(300));
    let file = directory.join("calibration.json");
    let mut calibrate = Command::new(programs::ffclock());
    // As seldom as the daemon asks: a program that is woken often is woken faster.
    let packets = (10 * seconds()).to_string();
    calibrate.args(["probe", "calibrate", "--packets", &packets, "--rate", "8", "--to"]);
    calibrate.arg(format!("127.0.0.1:{echo_port}")).arg("--file").arg(&file);
    calibrate.env("LD_PRELOAD", &library).env("FFCLOCK_SEND_DELAY_NS", delay_ns());
    let said = calibrate.output().unwrap();
    let error = String::from_utf8_lossy(&said.stderr);
    if error.contains("the boundary to the driver cannot be seen") {
        return println!("SKIP: {error}");
    }
    assert!(said.status.success(), "{error}");
    let port = free_port();
    let mut server = Command::new(programs::ffclock());
    server.args(["lab", "server", "--listen", &format!("127.0.0.1:{port}")]);
    let _server = spawn(server, &directory.join("server.log"));
    std::thread::sleep(Duration::from_millis(300));
    let calibrated = format!("stamps = \"user\"\nasymmetry = \"calibrated\"\ncalibration = \"{}\"", file.display());
    let _daemons = [
        daemon(&directory, "reference", ("stamps = \"trace\"", port), None),
        daemon(&directory, "slow", ("stamps = \"user\"", port), Some(&library)),
        daemon(&directory, "calibrated", (&calibrated, port), Some(&library)),
    ];
    std::thread::sleep(Duration::from_secs(seconds()));
    let (slow, calibrated) = (bias_us(&directory, "slow"), bias_us(&directory, "calibrated"));
    let (slow, calibrated) = (slow.expect("the clocks run"), calibrated.expect("the clocks run"));
    println!("bias of the slow host {slow:.2} us, calibrated {calibrated:.2} us");
    let log = std::fs::read_to_string(directory.join("calibrated.log")).unwrap();
    assert!(!log.contains("the host's delays are not known"), "{log}");
    let expected = delay_ns().parse::<f64>().unwrap() / 2e3;
    assert!((slow.abs() - expected).abs() < 0.5 * expected, "half of the delay, less what waking up takes: {slow} us");
    assert!(calibrated.abs() < slow.abs() / 10.0, "{calibrated} us of {slow} us");
}

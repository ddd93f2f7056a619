//! Prometheus itself reads the metrics of a running daemon, evaluates the shipped alert rules, and answers what the
//! shipped board asks. tests/monitoring.rs of ffclock-control has what its tool says without a daemon.

mod common;

use common::server::{TestServer, Truth};
use common::{Daemon, Scratch, server_section};
use ffclock_counter::CounterId;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a busy machine may take for anything.
const PATIENCE: Duration = Duration::from_secs(60);

fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port()
}

/// A running Prometheus; ended when dropped.
struct Prometheus {
    child: Child,
    port: u16,
}

impl Prometheus {
    /// The one that `tools/setup` unpacked, or that of this machine; `None` where there is none.
    fn program() -> Option<PathBuf> {
        [repository("target/peers/prometheus/usr/bin/prometheus"), PathBuf::from("prometheus")]
            .into_iter()
            .find(|program| Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success()))
    }

    /// Reads the metrics at this port of loopback each second, and judges them by the shipped rules.
    fn start(program: &Path, directory: &Path, metrics: u16) -> Self {
        let rules = fs::canonicalize(repository("packaging/prometheus/ffclock.rules.yml")).expect("the shipped rules");
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\n\
             rule_files: ['{}']\n\
             scrape_configs: [{{job_name: ffclock, static_configs: [{{targets: ['127.0.0.1:{metrics}']}}]}}]\n",
            rules.display()
        );
        let (file, port) = (directory.join("prometheus.yml"), free_port());
        fs::write(&file, config).expect("a file of the test");
        let log = File::create(directory.join("prometheus.log")).expect("a log");
        let child = Command::new(program)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", directory.join("prometheus").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("it starts");
        Prometheus { child, port }
    }

    /// What its interface answers; `None` while it does not answer yet.
    fn ask(&self, target: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        // By the older protocol the answer comes in one piece.
        stream.write_all(format!("GET /api/v1/{target} HTTP/1.0\r\n\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        let answer: Value = serde_json::from_str(body).ok()?;
        (answer["status"] == "success").then(|| answer["data"].clone())
    }

    /// The values that an expression has now.
    fn values(&self, expression: &str) -> Option<Vec<Value>> {
        let mut encoded = String::new();
        for byte in expression.bytes() {
            let _ = write!(encoded, "%{byte:02x}");
        }
        self.ask(&format!("query?query={encoded}"))?["result"].as_array().cloned()
    }

    /// Waits until an answer is as wanted.
    fn wait_for(&self, target: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let answer = self.ask(target);
            if let Some(answer) = answer.as_ref().filter(|answer| is_wanted(answer)) {
                return answer.clone();
            }
            assert!(begin.elapsed() < PATIENCE, "{target}: {answer:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rules(answer: &Value) -> Vec<&Value> {
    let groups = answer["groups"].as_array().map_or(&[][..], Vec::as_slice);
    groups.iter().flat_map(|group| group["rules"].as_array().map_or(&[][..], Vec::as_slice)).collect()
}

/// What the board asks, of every instance.
fn expressions_of_board() -> Vec<String> {
    let text = fs::read_to_string(repository("packaging/grafana/ffclock.json")).expect("the board");
    let board: Value = serde_json::from_str(&text).expect("the board is JSON");
    let panels = board["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    targets.map(|target| target["expr"].as_str().expect("an expression").replace("$instance", ".+")).collect()
}

#[test]
fn it_reads_a_running_daemon_and_judges_it_by_the_shipped_rules() {
    let Some(program) = Prometheus::program() else {
        return println!("SKIP: prometheus is not here (tools/setup peers unpacks it)");
    };
    let (scratch, port) = (Scratch::new("prometheus"), free_port());
    // It looks for its targets 5 s after its start: until then there is a daemon.
    let prometheus = Prometheus::start(&program, scratch.path(), port);
    let server = TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterId::CPU));
    let top = scratch.daemon_section(&format!("counter = \"tsc\"\nmetrics = \"127.0.0.1:{port}\""));
    let daemon = Daemon::start(&scratch, &(top + &server_section(server.address, "burst_count = 0")));
    daemon.wait_for("a clock", |status| status.clock.is_some());
    let targets = prometheus.wait_for("targets", |answer| answer["activeTargets"][0]["health"] == "up");
    assert_eq!(targets["activeTargets"][0]["lastError"], "");
    // A rate takes two readings.
    let lost = "rate(ffclock_source_lost_total[5m])";
    let begin = Instant::now();
    while prometheus.values(lost).is_none_or(|values| values.is_empty()) {
        assert!(begin.elapsed() < PATIENCE, "no second reading");
        std::thread::sleep(Duration::from_millis(200));
    }

    let shipped = fs::read_to_string(repository("packaging/prometheus/ffclock.rules.yml")).expect("the shipped rules");
    let alerts = shipped.lines().filter(|line| line.trim_start().starts_with("- alert:")).count();
    let is_judged = |rule: &&Value| rule["health"] != "unknown";
    let answer =
        prometheus.wait_for("rules", |answer| rules(answer).iter().filter(|rule| is_judged(rule)).count() == alerts);
    for rule in rules(&answer) {
        assert_eq!(rule["health"], "ok", "{rule}");
        assert_eq!(rule["state"], "inactive", "a sound daemon raises no alarm: {rule}");
    }
    assert!(alerts >= 10, "{alerts}");

    for expression in expressions_of_board() {
        let values = prometheus.values(&expression).unwrap_or_else(|| panic!("`{expression}` is refused"));
        assert!(!values.is_empty(), "`{expression}` gives nothing");
    }
    let bound = prometheus.values("ffclock_bound_seconds").expect("an answer")[0]["value"][1].clone();
    let bound: f64 = bound.as_str().and_then(|text| text.parse().ok()).expect("a number");
    assert!(bound > 0.0 && bound < 0.1, "{bound}");
}

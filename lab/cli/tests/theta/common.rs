//! What the tests share: a place, namespaces, ranks by hand, and what a good run looks like.

use ffclock_theta::log::{EventColumns, EventReader, LogReader, WayInColumns};
use ffclock_theta::record::Event;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub const FFCLOCK_LAB: &str = env!("CARGO_BIN_EXE_ffclock-lab");

/// A directory of the test's own.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ffclock-theta-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("works in a test");
        Place(path)
    }

    pub fn log(&self) -> String {
        self.0.join("run").display().to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether namespaces can be made here.
pub fn has_namespaces() -> bool {
    let made = Command::new("unshare").args(["--net", "ip", "link", "set", "lo", "up"]).output();
    let has = made.is_ok_and(|output| output.status.success());
    if !has {
        println!("SKIP: no network namespaces here (root is needed)");
    }
    has
}

pub fn has(program: &str) -> bool {
    let has = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !has {
        println!("SKIP: {program} is not installed (make setup)");
    }
    has
}

pub fn json(output: &Output) -> serde_json::Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The log is whole, everything in it keeps the rules, and nothing that was sent is missing.
pub fn judge(summary: &serde_json::Value, log: &str, (size, rounds): (u64, u64)) {
    assert_eq!(summary["failures"], serde_json::json!([]), "{summary}");
    assert_eq!(summary["sent"], size * size * rounds, "{summary}");
    assert_eq!(summary["perceived"], summary["sent"], "{summary}");
    let analysed = Command::new(FFCLOCK_LAB).args(["theta", "analyse", log]).output().expect("works in a test");
    assert!(analysed.status.success(), "{analysed:?}");
    let text = String::from_utf8_lossy(&analysed.stdout);
    assert!(text.contains(&format!("{} messages counted, 0 never perceived", size * size * rounds)), "{text}");
    assert!(text.contains(" 0 breaches"), "{text}");
}

/// Four hosts in namespaces, a millisecond between rounds, and what else is asked for; its output and the place of its
/// log.
pub fn run_four(name: &str, rounds: u64, more: &[&str]) -> (Output, Place) {
    let place = Place::new(name);
    let output = Command::new(FFCLOCK_LAB)
        .args(["--json", "theta", "run", "--netns", "4", "--f", "1"])
        .args(["--rounds", &rounds.to_string(), "--log", &place.log()])
        .args(if more.contains(&"--delay") { &[][..] } else { &["--delay", "1 ms"] })
        .args(if more.contains(&"--limit") { &[][..] } else { &["--limit", "20 s"] })
        .args(more)
        .output()
        .expect("works in a test");
    (output, place)
}

/// What `analyse` says of a log: whether it is well, its JSON, and its complaint.
pub fn analyse(log: &str, more: &[&str]) -> (bool, serde_json::Value, String) {
    let output = Command::new(FFCLOCK_LAB).args(["--json", "theta", "analyse", log]).args(more).output();
    let output = output.expect("works in a test");
    (output.status.success(), json(&output), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// All events of a log.
pub fn events(log: &LogReader, with_way_in: WayInColumns) -> Vec<Event> {
    let mut events = Vec::new();
    for part in log.streams().iter().flat_map(|stream| &stream.parts) {
        let (mut reader, mut batch) =
            (EventReader::open(part, with_way_in).expect("a whole log"), EventColumns::default());
        while reader.next_batch(&mut batch).expect("a whole log") {
            events.extend(reader.events(&batch).map(|event| event.expect("a whole log")));
        }
    }
    events
}

/// Four ranks on loopback, started by hand.
pub struct Ranks(pub Vec<Child>);

impl Ranks {
    pub fn start(port: u16, ranks: std::ops::Range<u32>, more: &[&str]) -> Self {
        let start = |rank: u32| {
            Command::new(FFCLOCK_LAB)
                .args(["--json", "theta", "rank", "--size", "4", "--f", "1", "--rank", &rank.to_string()])
                .args(["--rendezvous", &format!("127.0.0.1:{port}")])
                .args(more)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("works in a test")
        };
        Ranks(ranks.map(start).collect())
    }

    /// A rank has a second thread, its timer, once all have met.
    pub fn wait_until_running(&self, rank: usize) {
        let status = format!("/proc/{}/status", self.0[rank].id());
        let begun = Instant::now();
        while !std::fs::read_to_string(&status).unwrap_or_default().contains("Threads:\t2") {
            assert!(begun.elapsed() < Duration::from_secs(60), "the ranks do not meet");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(300));
    }

    /// Rank 0's end, which must come.
    pub fn end(&mut self) -> Output {
        let begun = Instant::now();
        while self.0[0].try_wait().expect("works in a test").is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "rank 0 hangs");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.0.remove(0).wait_with_output().expect("works in a test")
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A port that is free now.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").expect("works in a test").local_addr().expect("works in a test").port()
}

/// Addresses of hosts at a bridge.
pub const HOSTS: [&str; 4] = ["10.81.0.1", "10.81.0.2", "10.81.0.3", "10.81.0.4"];

/// Runs a script in a namespace with a bridge, at which the hosts are: namespaces called node1, node2 and so on at
/// port1, port2, each held by the process `bin/holder-ADDRESS` of the place. Everything ends with the one process that
/// the rest is below. `bin` is where a shell looks first.
pub fn bridged(place: &Place, hosts: &[&str], run: &str) -> Output {
    let script = format!(
        r#"set -e
        cd {directory}
        mkdir -p bin
        ip link set lo up
        ip link add name hub type bridge && ip link set hub up
        number=0
        for host in {hosts}; do
            number=$((number + 1))
            unshare --net --uts sh -c "hostname node$number && exec sleep 120" &
            holder=$!
            while [ "$(readlink /proc/$holder/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
            ip link add name port$number type veth peer name eth0 netns $holder
            ip link set port$number master hub up
            nsenter --target $holder --net ip link set lo up
            nsenter --target $holder --net ip address add $host/24 dev eth0
            nsenter --target $holder --net ip link set eth0 up
            while [ "$(nsenter --target $holder --uts hostname)" != node$number ]; do sleep 0.02; done
            echo $holder > bin/holder-$host
        done
        export PATH="{directory}/bin:$PATH"
        {run}"#,
        directory = place.0.display(),
        hosts = hosts.join(" "),
    );
    let own = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", &script];
    Command::new("timeout").args(["-k", "5", "100"]).args(own).output().expect("works in a test")
}

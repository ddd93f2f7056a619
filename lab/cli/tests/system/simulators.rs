//! ffclockd in a network simulator that stands between a program and its C library (docs/simulators.md): without the
//! adapter the gaps of such a tool stop it or leave it without its server; with it virtual hours take seconds, and
//! every second has its reading.

use super::{fresh_directory, programs, root};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// What the simulator can lack alone so that the daemon does not get its server's time.
const GAPS: [&str; 7] = ["timer", "fcntl", "flags", "unix", "ioctl", "poll", "queue"];
const PATIENCE: Duration = Duration::from_secs(60);

/// A place with the simulator, the adapter and a configuration.
struct Bench {
    directory: PathBuf,
}

/// How a run of the daemon ended, and what it said.
struct Ended {
    status: Option<ExitStatus>,
    said: String,
}

impl Bench {
    /// `None` where there is no compiler.
    fn new(name: &str) -> Option<Self> {
        if !Command::new("cc").arg("--version").output().is_ok_and(|ended| ended.status.success()) {
            println!("SKIP: a network simulator: there is no C compiler");
            return None;
        }
        let bench = Bench { directory: fresh_directory(name) };
        let lab = root().join("lab");
        bench.compile("simulator.so", &[lab.join("cli/tests/system/simulator.c")], &["-lm"]);
        let headers = format!("-I{}", root().join("clock/client/include").display());
        bench.compile(
            "adapter.so",
            &["adapter.c", "samples.c"].map(|name| lab.join("adapter").join(name)),
            &[&headers],
        );
        let place = bench.directory.display();
        let configuration = format!(
            "counter = \"monotonic-raw\"\npage = \"{place}/page\"\ncontrol = \"{place}/control\"\nstate = \"{place}/state\"\n\
             [[server]]\naddress = \"192.168.123.1\"\npoll = \"16 s\"\n"
        );
        fs::write(bench.directory.join("configuration"), configuration).unwrap();
        Some(bench)
    }

    fn compile(&self, name: &str, sources: &[PathBuf], options: &[&str]) {
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]).arg(self.directory.join(name));
        let ended = compiler.args(sources).args(options).arg("-ldl").output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }

    fn place(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Runs the daemon for this number of virtual seconds with these libraries before it. It is killed when the
    /// patience is over; then it has no status.
    fn run(&self, libraries: &[&str], (seconds, closed): (u32, &str), patience: Duration) -> Ended {
        ["page", "page.history", "control"].iter().for_each(|name| drop(fs::remove_file(self.place(name))));
        drop(fs::remove_dir_all(self.place("state")));
        let preloaded: Vec<String> = libraries.iter().map(|name| self.place(name).display().to_string()).collect();
        let log = self.place("log");
        let mut child = Command::new(programs::directory().join("ffclockd"))
            .arg("--config")
            .arg(self.place("configuration"))
            .env("LD_PRELOAD", preloaded.join(" "))
            .envs([("SIMULATOR_SECONDS", seconds.to_string().as_str()), ("SIMULATOR_CLOSED", closed)])
            .env("FFCLOCK_ADAPTER_PAGE", self.place("page"))
            .env("FFCLOCK_ADAPTER_OUTPUT", self.place("samples.csv"))
            .env("FFCLOCK_ADAPTER_TRUTH", "/dev/ptp0")
            .stdout(File::create(&log).unwrap())
            .stderr(File::options().append(true).open(&log).unwrap())
            .spawn()
            .unwrap();
        let status = end_of(&mut child, patience);
        Ended { status, said: String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned() }
    }
}

/// How a child ended; `None` where it had to be killed, the patience being over.
fn end_of(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    while begun.elapsed() < patience {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

impl Ended {
    fn has_its_server(&self) -> bool {
        self.status.is_some_and(|status| status.success()) && self.said.contains("the server answers")
    }
}

/// A line of what the adapter wrote.
struct Sample {
    truth_s: i64,
    status: String,
    error_ns: Option<i64>,
    bound_ns: Option<i64>,
}

fn samples(path: &Path) -> Vec<Sample> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("truth_ns,raw_ns,status,utc_ns,bound_ns,uncertainty_ns,error_ns"));
    let parse = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [truth, _, status, _, bound, _, error] = cells[..] else { panic!("{line}") };
        let (bound_ns, error_ns) = (bound.parse().ok(), error.parse().ok());
        let truth_s = truth.parse::<i64>().unwrap() / 1_000_000_000;
        Sample { truth_s, status: status.to_owned(), error_ns, bound_ns }
    };
    lines.map(parse).collect()
}

#[test]
fn each_gap_of_a_simulator_stops_the_daemon_and_the_adapter_closes_it() {
    let Some(bench) = Bench::new("simulator-gaps") else { return };
    let but = |gap: &str| GAPS.iter().filter(|one| **one != gap).copied().collect::<Vec<_>>().join(",");
    // All of them closed, it runs, but blind to the stamps of the kernel, which come too late and under wrong numbers.
    let blind = bench.run(&["simulator.so"], (120, &GAPS.join(",")), PATIENCE);
    assert!(blind.has_its_server() && blind.said.contains("no usable stamps come from the kernel"), "{}", blind.said);
    for gap in GAPS {
        // It ends at once, or would wait for ever.
        let ended = bench.run(&["simulator.so"], (120, &but(gap)), Duration::from_secs(1));
        assert!(!ended.has_its_server(), "{gap}: {}", ended.said);
        let ended = bench.run(&["adapter.so", "simulator.so"], (120, &but(gap)), PATIENCE);
        assert!(ended.has_its_server(), "{gap}: {:?} {}", ended.status, ended.said);
        assert!(!ended.said.contains("no usable stamps"), "{gap}: {}", ended.said);
    }
}

#[test]
fn every_virtual_second_has_a_reading_within_its_bound() {
    let Some(bench) = Bench::new("simulator-seconds") else { return };
    const SECONDS: u32 = 3 * 3600;
    let ended = bench.run(&["adapter.so", "simulator.so"], (SECONDS, ""), PATIENCE);
    assert!(ended.has_its_server(), "{:?} {}", ended.status, ended.said);
    let all = samples(&bench.place("samples.csv"));
    assert_eq!(all.len(), SECONDS as usize);
    assert!(all.windows(2).all(|two| two[1].truth_s == two[0].truth_s + 1), "a second is missing");
    for one in &all {
        let (Some(error), Some(bound)) = (one.error_ns, one.bound_ns) else { continue };
        assert!(error.abs() <= bound, "at {} s: {error} ns, bound {bound} ns", one.truth_s);
    }
    // The first reply comes within a millisecond, and the status within the burst.
    assert!(all.iter().all(|one| one.error_ns.is_some()) && all[60..].iter().all(|one| one.status == "synchronised"));
    // The random part of the path is 15 us.
    let mut late: Vec<i64> = all[3600..].iter().filter_map(|one| Some(one.error_ns?.abs())).collect();
    late.sort_unstable();
    assert!(late[late.len() / 2] < 15_000, "{} ns", late[late.len() / 2]);
    // The same noise, the same readings: nothing of this machine is in them.
    let first = fs::read(bench.place("samples.csv")).unwrap();
    bench.run(&["adapter.so", "simulator.so"], (SECONDS, ""), PATIENCE);
    assert_eq!(samples(&bench.place("samples.csv")).len(), all.len());
    assert!(fs::read(bench.place("samples.csv")).unwrap() == first, "two runs of one seed differ");
}

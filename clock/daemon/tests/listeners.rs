//! The daemon's listening sockets, its signals and its records.

mod common;

use common::server::{TestServer, Truth};
use common::{Daemon, Scratch, server_section};
use ffclock_control::protocol::Answer;
use ffclock_counter::CounterId;
use ffclock_trace::TraceReader;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    socket.local_addr().expect("an address").port()
}

#[test]
fn metrics_are_served_and_complete() {
    let scratch = Scratch::new("metrics");
    let server = TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterId::CPU));
    let port = free_port();
    let top = scratch.daemon_section(&format!("metrics = \"127.0.0.1:{port}\""));
    let daemon = Daemon::start(&scratch, &(top + &server_section(server.address, "")));
    daemon.wait_for("an estimate", |status| status.clock.is_some());
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    for expected in ["200 OK", "ffclock_bound_seconds ", "ffclock_source_requests_total{source=", "# EOF\n"] {
        assert!(answer.contains(expected), "{expected} missing:\n{answer}");
    }
}

#[test]
fn nonsense_on_the_control_socket_gets_an_error() {
    let scratch = Scratch::new("control");
    let server = TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterId::CPU));
    let daemon = Daemon::start(&scratch, &(scratch.daemon_section("") + &server_section(server.address, "")));
    daemon.wait_for("an answer", |_| true);
    assert!(matches!(daemon.ask("sesame"), Some(Answer::Error { .. })));
    assert!(matches!(daemon.ask(&"x".repeat(8000)), Some(Answer::Error { .. })));
    assert!(daemon.status().is_some());
}

#[test]
fn a_second_daemon_is_refused() {
    let scratch = Scratch::new("second");
    let server = TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterId::CPU));
    let config = scratch.daemon_section("") + &server_section(server.address, "");
    let mut first = Daemon::start(&scratch, &config);
    first.wait_for("an answer", |_| true);
    // It is refused by the page if they share it, even without a control socket, and otherwise by the control socket.
    let without_control = config.replace("/control\"", "/other\"").replace("control = ", "control = \"off\" #");
    let other_page = config.replace("/page\"", "/other-page\"");
    for (text, reason) in [
        (&config, "is being written by another daemon"),
        (&without_control, "is being written by another daemon"),
        (&other_page, "another ffclockd is running"),
    ] {
        let said = refused(&scratch, text);
        assert!(said.contains(reason), "{reason}: {said}");
    }
    assert!(first.is_running());
    assert!(first.status().is_some(), "its control socket is still there");
}

/// Starts a daemon that must refuse to start, and returns its error text.
fn refused(scratch: &Scratch, config: &str) -> String {
    let path = scratch.path().join("refused.toml");
    std::fs::write(&path, config).expect("the configuration can be written");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ffclockd"));
    let daemon = command.arg("--config").arg(path).output().expect("ffclockd starts");
    assert!(!daemon.status.success());
    String::from_utf8_lossy(&daemon.stderr).into_owned()
}

/// The program as an ordinary user runs it: the test's own user, or that without rights if it is root.
fn as_ordinary_user(scratch: &Scratch) -> Option<Command> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let program = scratch.path().join("ffclockd");
    std::fs::copy(env!("CARGO_BIN_EXE_ffclockd"), &program).expect("room for a copy");
    std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    if std::fs::metadata("/proc/self").expect("this process").uid() != 0 {
        return Some(Command::new(program));
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    let works = command.arg("true").status().is_ok_and(|status| status.success());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    works.then_some(command)
}

#[test]
fn an_ordinary_user_needs_no_configuration() {
    let scratch = Scratch::new("ordinary");
    let Some(mut command) = as_ordinary_user(&scratch) else {
        println!("SKIP: this test may not become another user");
        return;
    };
    let server = TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterId::CPU));
    let (runtime, home) = (scratch.path().join("runtime"), scratch.path().join("home"));
    let log = std::fs::File::create(scratch.path().join("log")).unwrap();
    command.env("XDG_RUNTIME_DIR", &runtime).env("HOME", &home).env_remove("XDG_STATE_HOME").stderr(log);
    let mut child = command.args(["-s", &server.address.to_string()]).spawn().unwrap();
    let wanted = [runtime.join("ffclock/page"), runtime.join("ffclock/control"), home.join(".local/state/ffclock")];
    let start = std::time::Instant::now();
    while !wanted.iter().all(|path| path.exists()) && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let log = std::fs::read_to_string(scratch.path().join("log")).unwrap();
    assert!(wanted.iter().all(|path| path.exists()), "{wanted:?}\n{log}");
}

#[test]
fn a_user_without_a_place_learns_what_to_do() {
    let scratch = Scratch::new("no-place-at-all");
    let Some(mut command) = as_ordinary_user(&scratch) else {
        println!("SKIP: this test may not become another user");
        return;
    };
    let output = command.env_remove("XDG_RUNTIME_DIR").args(["-s", "192.0.2.1"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("name `page` in the configuration"), "{said}");
}

#[test]
fn a_fifo_is_no_configuration() {
    let scratch = Scratch::new("fifo");
    let fifo = scratch.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let output =
        Command::new(env!("CARGO_BIN_EXE_ffclockd")).arg("--check-config").arg("-c").arg(&fifo).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("not a regular file"), "{said}");
}

#[test]
fn what_stands_in_the_way_is_named_and_left_alone() {
    let scratch = Scratch::new("in-the-way");
    let plain = scratch.path().join("plain");
    std::fs::write(&plain, "precious").unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (plain_path, port) = (plain.display(), taken.local_addr().unwrap().port());
    let server = "[[server]]\naddress = \"192.0.2.1\"\n";
    let section = |rest: &str| scratch.daemon_section(rest) + server;
    let control = section("").replace("/control\"", "/plain\"");
    let below_a_file = section("").replace("/page\"", "/plain/page\"");
    std::fs::create_dir(scratch.path().join("directory")).unwrap();
    let directory = section("").replace("/page\"", "/directory\"");
    let page = section("").replace("/page\"", "/plain\"");
    for (text, expected) in [
        (control, format!("control socket {plain_path}: something else is there that is not a socket")),
        (below_a_file, "the page cannot be made".to_owned()),
        (directory, "is not a regular file".to_owned()),
        (page, format!("{plain_path} is there already and is not a clock page: it is left alone")),
        (section(&format!("metrics = \"127.0.0.1:{port}\"")), format!("metrics on 127.0.0.1:{port}: ")),
    ] {
        let said = refused(&scratch, &text);
        assert!(said.contains(&expected), "{expected}: {said}");
    }
    assert_eq!(std::fs::read_to_string(&plain).unwrap(), "precious");
    assert!(!scratch.path().join("control").exists(), "a daemon that does not start leaves no socket behind");
}

#[test]
fn without_descriptors_left_the_daemon_rests() {
    let scratch = Scratch::new("descriptors");
    let server = TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterId::CPU));
    let config = scratch.daemon_section("counter = \"tsc\"") + &server_section(server.address, "");
    let daemon = Daemon::start_after(&scratch, &config, "ulimit -n 20");
    daemon.wait_for("an estimate", |status| status.clock.is_some());
    let visitors: Vec<_> = (0..40).map(|_| UnixStream::connect(scratch.path().join("control")).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(300));
    let before = daemon.processor_ticks();
    std::thread::sleep(Duration::from_secs(1));
    let used = daemon.processor_ticks() - before;
    assert!(used < 30, "{used} of 100 ticks of processor time, for visitors who cannot be let in");
    drop(visitors);
    daemon.wait_for("an answer", |_| true);
}

#[test]
fn the_daemon_sleeps_between_its_polls() {
    let scratch = Scratch::new("sleeps");
    let server = TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterId::CPU));
    let section = server_section(server.address, "burst_count = 0").replace("125 ms", "16 s");
    let daemon = Daemon::start(&scratch, &(scratch.daemon_section("counter = \"tsc\"") + &section));
    daemon.wait_for("an estimate", |status| status.clock.is_some());
    std::thread::sleep(Duration::from_millis(100));
    let sleeps = || daemon.process_status("voluntary_ctxt_switches:");
    let before = sleeps();
    std::thread::sleep(Duration::from_secs(2));
    assert!(sleeps() - before <= 1, "woken {} times within 2 s, with a poll of 16 s", sleeps() - before);
}

/// A reload that changes the servers holds the clock twice for a moment.
#[test]
fn sixteen_servers_and_a_reload_fit_into_the_memory_that_the_unit_allows() {
    let scratch = Scratch::new("sixteen");
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers: Vec<_> = (0..17).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    let config = |servers: &[TestServer]| {
        let sections = servers.iter().map(|server| server_section(server.address, "").replace("125 ms", "500 ms"));
        scratch.daemon_section("counter = \"tsc\"") + &sections.collect::<String>()
    };
    let daemon = Daemon::start(&scratch, &config(&servers[..16]));
    daemon.wait_for("exchanges with all", |status| {
        status.sources.len() == 16 && status.sources.iter().all(|source| source.used >= 8)
    });
    scratch.write_config(&config(&servers[1..]));
    assert_eq!(daemon.ask("{\"command\":\"reload\"}"), Some(Answer::Reloaded));
    daemon.wait_for("exchanges with the new one", |status| status.sources.iter().all(|source| source.used >= 2));
    let unit = include_str!("../../../packaging/systemd/ffclockd.service");
    let limit = unit.lines().find_map(|line| line.strip_prefix("MemoryMax=")?.strip_suffix('M'));
    let limit = limit.and_then(|mebibytes| mebibytes.parse::<u64>().ok()).expect("the unit has a limit in MiB");
    let most = daemon.process_status("VmHWM:") / 1024;
    // What a day adds (pages of the histories that are touched late) and the files in memory have the rest.
    assert!(most < limit * 3 / 4, "{most} MiB of {limit}");
}

#[test]
fn servers_come_and_go_with_the_configuration() {
    let scratch = Scratch::new("come-and-go");
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers = [(); 3].map(|()| TestServer::start("127.0.0.1:0", truth));
    let config = |which: &[usize]| {
        let sections: String = which.iter().map(|&server| server_section(servers[server].address, "")).collect();
        scratch.daemon_section("counter = \"tsc\"") + &sections
    };
    let daemon = Daemon::start(&scratch, &config(&[0, 1]));
    let before = daemon.wait_for("exchanges with both", |status| status.sources.iter().all(|source| source.used >= 3));
    scratch.write_config(&config(&[2, 1]));
    assert_eq!(daemon.ask("{\"command\":\"reload\"}"), Some(Answer::Reloaded));
    let after = daemon.wait_for("the new one", |status| status.sources.iter().all(|source| source.used >= 1));
    let names: Vec<&str> = after.sources.iter().map(|source| source.name.as_str()).collect();
    let port = |server: usize| servers[server].address.port();
    assert_eq!(names, [format!("127.0.0.1:{}", port(2)), format!("127.0.0.1:{}", port(1))]);
    assert!(after.sources[1].used >= before.sources[1].used, "the one that stayed lost nothing");
    assert!(after.clock.is_some());
    scratch.write_config(&(config(&[1]) + &server_section(servers[1].address, "")));
    assert!(
        matches!(daemon.ask("{\"command\":\"reload\"}"), Some(Answer::Error { message }) if message.contains("twice"))
    );
}

#[test]
fn records_replay_to_what_was_published() {
    let scratch = Scratch::new("record");
    let server = TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterId::CPU));
    let record = scratch.path().join("record");
    let top = scratch.daemon_section(&format!("counter = \"tsc\"\nrecord = \"{}\"", record.display()));
    let mut daemon = Daemon::start(&scratch, &(top + &server_section(server.address, "")));
    daemon.wait_for("some exchanges", |status| status.sources[0].used >= 10);
    daemon.signal("TERM");
    assert!(daemon.wait());
    let file = std::fs::read_dir(&record).unwrap().next().unwrap().unwrap().path();
    let rows: Vec<_> = TraceReader::open(&file).unwrap().map(|row| row.unwrap()).collect();
    let exchanges = rows.iter().filter(|row| row.exchange.is_some()).count();
    assert!(exchanges >= 10, "{exchanges}");
    assert!(rows.windows(2).all(|pair| pair[0].sequence < pair[1].sequence));
}

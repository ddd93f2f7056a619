//! `ffclock-lab probe` where something is wrong: a clear error, or a gap that is counted and explained.

use super::{fresh_directory, programs, root};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn ffclock_lab() -> String {
    programs::ffclock_lab().display().to_string()
}

/// A child, ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn probe_to(port: u16, packets: &str) -> Output {
    let mut command = Command::new(ffclock_lab());
    command.args([
        "probe",
        "run",
        "--json",
        "--packets",
        packets,
        "--rate",
        "500",
        "--to",
        &format!("127.0.0.1:{port}"),
    ]);
    command.output().unwrap()
}

/// A server that answers every request as `answer` says, for as long as the test needs it.
fn serve(answer: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            for reply in answer(&buffer[..length]) {
                let _ = socket.send_to(&reply, from);
            }
        }
    });
    port
}

#[test]
fn a_server_that_answers_something_else_is_distinguished_from_silence() {
    let silent = probe_to(serve(|_| Vec::new()), "20");
    assert!(!silent.status.success());
    assert!(text(&silent.stderr).contains("none of 20 packets was answered"), "{}", text(&silent.stderr));
    let wrong = probe_to(serve(|_| vec![b"who is there?".to_vec()]), "20");
    let said = text(&wrong.stderr);
    assert!(said.contains("20 packets came that are no replies") && said.contains("ffclock-lab probe echo"), "{said}");
    // The request itself, unchanged: a host that mirrors packets is no echo server of ours.
    let mirrored = probe_to(serve(|request| vec![request.to_vec()]), "20");
    assert!(text(&mirrored.stderr).contains("no replies"), "{}", text(&mirrored.stderr));
}

#[test]
fn replies_that_come_twice_late_or_never_are_counted() {
    // Every tenth is dropped; every other reply comes twice, with a packet of another run between.
    let port = serve(|request| {
        let sequence = u64::from_be_bytes(request[16..24].try_into().unwrap());
        let mut reply = request[..request.len() - 1].to_vec();
        reply[24] = 1;
        let mut of_another_run = reply.clone();
        of_another_run[8] ^= 1;
        if sequence % 10 == 3 { Vec::new() } else { vec![reply.clone(), of_another_run, reply] }
    });
    let output = probe_to(port, "100");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = &answer["phases"][0]["counts"];
    let count = |name: &str| counts[name].as_u64().unwrap();
    assert_eq!((count("sent"), count("received"), count("lost")), (100, 90, 10), "{counts}");
    assert_eq!((count("duplicated"), count("foreign")), (90, 90), "{counts}");
}

#[test]
fn without_tracefs_the_rest_remains_and_the_reason_is_named() {
    let script = format!(
        "mount -t tmpfs none /sys/kernel && exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin {} probe run --json --packets 20 --to 127.0.0.1:{}",
        ffclock_lab(),
        serve(|request| {
            let mut reply = request[..request.len() - 1].to_vec();
            reply[24] = 1;
            vec![reply]
        })
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
    let said = text(&output.stderr);
    if said.contains("unshare") || said.contains("mount:") {
        return println!("SKIP: {said}");
    }
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let phase = &answer["phases"][0];
    assert_eq!(phase["counts"]["received"], 20);
    let reasons = phase["unavailable"].to_string();
    assert!(reasons.contains("no access to the kernel's tracing"), "{reasons}");
    assert!(phase["findings"]["delays"].as_array().unwrap().iter().any(|delay| delay["site"] == "user-send"));
}

#[test]
fn a_device_that_vanishes_is_a_counted_gap() {
    let mut command = Command::new(ffclock_lab());
    command.args(["probe", "run", "--netns", "--json", "--packets", "1500", "--rate", "500"]);
    let mut running = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    std::thread::sleep(Duration::from_millis(1_500));
    let pid = running.0.id().to_string();
    let device = format!("ffclient{pid}");
    let cut = Command::new("nsenter").args(["--net", "--target", &pid, "ip", "link", "del", &device]).output();
    let is_cut = cut.is_ok_and(|output| output.status.success());
    let child = std::mem::replace(&mut running.0, Command::new("true").spawn().unwrap());
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    if said.contains("cannot make a network namespace") || !is_cut {
        return println!("SKIP: no namespace, or no right to enter it: {said}");
    }
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let counts = &answer["phases"][0]["counts"];
    let count = |name: &str| counts[name].as_u64().unwrap();
    assert!(count("received") > 50 && count("refused") > 50, "{counts}");
    assert_eq!(count("sent"), 1_500, "{counts}");
    assert_eq!(count("lost"), 1_500 - count("received"), "{counts}");
}

/// Runs a script in a network namespace of its own with loopback; `None` where that is not permitted.
fn in_own_network(script: &str) -> Option<Output> {
    let script = format!("ip link set lo up && {script}");
    let output = Command::new("unshare").args(["--net", "sh", "-c", &script]).output().unwrap();
    let said = text(&output.stderr);
    if said.contains("unshare") {
        println!("SKIP: {said}");
        return None;
    }
    Some(output)
}

/// A service, a client of it, and an observer that watches as soon as the client has its socket (12399 is 306F).
fn watched(client: &str, watch: &str) -> Option<Output> {
    let program = ffclock_lab();
    in_own_network(&format!(
        "{program} probe echo --listen 127.0.0.1:12399 >/dev/null & echo=$!; sleep 0.3; \
         {program} probe run --to 127.0.0.1:12399 --without tap,tracing {client} >/dev/null & client=$!; \
         for try in $(seq 100); do grep -q ' 0100007F:306F 01' /proc/net/udp && break; sleep 0.05; done; \
         {watch}; wait $client; kill $echo"
    ))
}

#[test]
fn the_traffic_of_a_running_service_is_broken_down() {
    let watch = format!("{} probe watch --port 12399 --for '2 s' --json", ffclock_lab());
    let Some(output) = watched("--packets 400 --rate 100", &watch) else { return };
    let said = text(&output.stderr);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let count = |name: &str| answer["counts"][name].as_u64().unwrap();
    // On loopback both ends are here; the server's is the one that is looked at.
    assert_eq!(answer["about"]["role"], "server");
    assert!(count("outgoing") > 100 && count("incoming") > 100 && count("answered") > 100, "{}", answer["counts"]);
    assert_eq!(count("asked"), 0);
    assert!(answer["turnaround_ns"]["min"].as_f64().unwrap() > 0.0);
    let programs = answer["programs"].as_array().unwrap();
    let sockets: Vec<&Value> = programs.iter().flat_map(|program| program["sockets"].as_array().unwrap()).collect();
    let server = sockets.iter().find(|socket| socket["local"] == "127.0.0.1:12399").expect("the server is found");
    assert_eq!(server["stamps"]["Ok"], serde_json::json!([]), "it asks for none");
    let client = sockets.iter().find(|socket| socket["remote"] == "127.0.0.1:12399").expect("the client is found");
    assert!(client["stamps"]["Ok"].to_string().contains("transmit, software"), "{client}");
    for reason in answer["unavailable"].as_array().unwrap() {
        println!("SKIP: {reason}");
    }
    if answer["unavailable"] == serde_json::json!([]) {
        let delays = answer["findings"]["delays"].as_array().unwrap();
        for site in ["user-send", "tap-out", "queue-out", "tap-in", "user-receive"] {
            let delay =
                delays.iter().find(|delay| delay["site"] == site).unwrap_or_else(|| panic!("no {site}: {answer}"));
            assert!(delay["count"].as_u64().unwrap() > 80, "{delay}");
        }
        assert!(answer["calls"]["sends"].as_u64().unwrap() > 100, "{}", answer["calls"]);
    }
}

#[test]
fn a_watcher_that_is_held_up_counts_what_it_missed() {
    let watch = format!(
        "{} probe watch --port 12399 --for '4 s' --json & watch=$!; sleep 1; kill -STOP $watch; sleep 2; kill -CONT $watch; wait $watch",
        ffclock_lab()
    );
    let Some(output) = watched("--packets 70000 --rate 20000", &watch) else { return };
    let said = text(&output.stderr);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let counts = &answer["counts"];
    let count = |name: &str| counts[name].as_u64().unwrap();
    assert!(count("tap_dropped") > 0, "{counts}");
    let is_traced = !answer["unavailable"].to_string().contains("kernel tracing");
    assert!(!is_traced || count("events_lost") > 0, "{answer}");
}

#[test]
fn a_service_that_cannot_be_watched_is_explained() {
    let program = ffclock_lab();
    let Some(output) = in_own_network(&format!("{program} probe watch --port 12399 --for '300 ms'")) else { return };
    let said = text(&output.stderr);
    assert!(said.contains("no UDP packet from or to port 12399") && said.contains("no program has a socket"), "{said}");
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    let output = command.arg(&program).args(["probe", "watch", "--port", "123", "--for", "1 s"]).output().unwrap();
    let said = text(&output.stderr);
    if said.contains("setpriv") {
        println!("SKIP: no rights can be given up here: {said}");
    } else {
        assert!(said.contains("CAP_NET_RAW"), "{said}");
    }
    let mut command = Command::new(&program);
    let output = command.args(["probe", "watch", "--port", "123", "--pid", "4194305"]).output().unwrap();
    assert!(text(&output.stderr).contains("process 4194305 cannot be looked at"), "{}", text(&output.stderr));
}

#[test]
fn the_client_for_freebsd_speaks_with_the_echo_server() {
    let directory = fresh_directory("probe-client");
    let client = directory.join("probe-client");
    let source = root().join("packaging/freebsd/probe-client.c");
    let compiled =
        Command::new("cc").args(["-Wall", "-Wextra", "-Werror", "-O2", "-o"]).arg(&client).arg(source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return println!("SKIP: no C compiler");
    }
    let mut echo = Command::new(ffclock_lab());
    echo.args(["probe", "echo", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut echo = Running(echo.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(echo.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(';').next()).unwrap().to_owned();
    let begun = Instant::now();
    let output = Command::new(&client).args(["127.0.0.1", "200", "1000", &port]).output().unwrap();
    assert!(output.status.success() && begun.elapsed() < Duration::from_secs(20));
    assert_eq!(text(&output.stderr), "probe-client: 200 sent, 200 received\n");
}

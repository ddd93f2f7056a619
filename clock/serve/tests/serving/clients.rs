//! Clients of other projects: chronyd looks at the server once, without touching a clock.

use crate::common::{Place, Said, bare_request};
use ffclock_units::Span;
use std::path::Path;
use std::process::Command;

/// `chronyd -Q` prints how wrong it takes the system clock to be, and sets nothing. The truth of the page is the system
/// clock when the test begins.
#[test]
fn chronyd_believes_the_server() {
    let chronyd = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers/chronyd");
    let is_there = Command::new(&chronyd).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        println!("SKIP: chronyd is not unpacked");
        return;
    }
    let place = Place::new();
    let mut writer = place.writer();
    place.publish(&mut writer, Said { error: Span::from_millis(250), ..Said::within(Span::from_millis(300)) });
    let serving = place.serve("");
    let server = format!("server 127.0.0.1 port {} iburst maxsamples 4", serving.address.port());
    let pid = format!("pidfile {}/chronyd.pid", place.directory.display());
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let output = Command::new(&chronyd)
        .args(["-u", String::from_utf8(user).unwrap().trim()])
        .args(["-Q", "-x", "-t", "20", &server, &pid, "cmdport 0", "bindcmdaddress /"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    let wrong = said.split("clock wrong by ").nth(1).and_then(|rest| rest.split(' ').next());
    let wrong: f64 = wrong.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    assert!((wrong - 0.25).abs() < 0.01, "{said}");
    assert!(serving.count("answered") > 0);
}

/// systemd's protocol: the socket is descriptor 3, and the process has no right to open one of its own there.
#[test]
fn a_socket_that_is_handed_over_is_served() {
    let place = Place::new();
    let mut writer = place.writer();
    place.publish(&mut writer, Said::within(Span::from_millis(1)));
    let is_there = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        println!("SKIP: there is no python3 to hand over a socket");
        return;
    }
    let manager = "import os, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('127.0.0.1', 0))
print(s.getsockname()[1], flush=True)
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1')
os.execv(sys.argv[1], sys.argv[1:])";
    let mut child = Command::new("python3")
        .args(["-c", manager, env!("CARGO_BIN_EXE_ffclock-serve"), "--config"])
        .arg(place.configure("threads = 2"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut port = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut port).unwrap();
    let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(format!("127.0.0.1:{}", port.trim())).unwrap();
    client.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
    let mut reply = [0; 100];
    let mut exchange = |request: &[u8; 48]| {
        client.send(request)?;
        client
            .recv(&mut reply)
            .map(|length| (length, reply[0], reply[1], reply[24..32].to_vec(), reply[32..40].to_vec()))
    };
    let first = exchange(&bare_request(0x23));
    // Requests that name the reply before, as those of the interleaved mode do. The threads share what the kernel says
    // of departures, so none of them may use it: all replies are basic ones, which repeat the time of sending.
    let later: Vec<_> = (1..=8_u8)
        .scan(first.as_ref().map(|first| first.4.clone()).unwrap_or_default(), |received, number| {
            let mut request = bare_request(0x23);
            request[24..32].copy_from_slice(received);
            request[32..40].copy_from_slice(&[number; 8]);
            request[40..48].copy_from_slice(&[0x80 | number; 8]);
            let reply = exchange(&request).ok()?;
            *received = reply.4.clone();
            Some((number, reply.3))
        })
        .collect();
    let _ = child.kill();
    child.wait().unwrap();
    let (length, head, stratum, ..) = first.unwrap();
    assert_eq!((length, head, stratum), (48, 0x24, 2));
    assert_eq!(later.len(), 8);
    assert!(later.iter().all(|(number, origin)| *origin == [0x80 | number; 8]), "{later:?}");
}

/// ntpd follows the server, each in a network namespace, since both have port 123: it says whom it selects in its log
/// of peers, and touches no clock.
#[test]
fn ntpd_follows_the_server() {
    let ntpd = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers/ntpd");
    let possible = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    if !possible(Command::new(&ntpd).arg("--version")) {
        println!("SKIP: ntpd is not unpacked");
        return;
    }
    if !possible(Command::new("unshare").args(["--net", "ip", "link", "set", "lo", "up"])) {
        println!("SKIP: no network namespace may be made here");
        return;
    }
    let place = Place::new();
    let mut writer = place.writer();
    place.publish(&mut writer, Said::within(Span::from_millis(5)));
    let here = place.directory.display();
    let config = place.configure("").with_file_name("ntp.conf");
    let text = format!(
        "server 192.0.2.1 minpoll 0 maxpoll 0 iburst\ndisable ntp\ndisable kernel\nlogfile {here}/ntpd.log\n\
         logconfig =all\nstatsdir {here}/\nfilegen peerstats file peers type none enable\ndriftfile {here}/drift\n"
    );
    std::fs::write(&config, text).unwrap();
    let script = "unshare --net sleep 60 & other=$!; ip link add v0 type veth peer name v1; sleep 0.5
        ip link set v1 netns $other; ip addr add 192.0.2.1/24 dev v0; ip link set v0 up
        nsenter -t $other -n ip addr add 192.0.2.2/24 dev v1; nsenter -t $other -n ip link set v1 up
        \"$1\" --config \"$2\" --listen 192.0.2.1:123 & server=$!
        nsenter -t $other -n \"$3\" -n -c \"$4\" & client=$!
        sleep \"$5\" & pause=$!; trap 'kill $server $client $other $pause' EXIT; trap exit TERM; wait $pause";
    let mut inside = Command::new("unshare")
        .args(["--net", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_ffclock-serve")])
        .arg(place.directory.join("serve.toml"))
        .args([&ntpd, &config])
        .arg("40")
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // The fourth hexadecimal digit of the status is what RFC 9327 calls the selection: 6 is the system's peer.
    let selected = || {
        let peers = std::fs::read_to_string(place.directory.join("peers")).unwrap_or_default();
        let mut fields = peers.lines().filter_map(|line| line.split_whitespace().nth(3).map(str::to_owned));
        fields.any(|status| u16::from_str_radix(&status, 16).is_ok_and(|status| status >> 8 & 7 == 6))
    };
    let mut follows = false;
    while !follows && inside.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(200));
        follows = selected();
    }
    let pid = inside.id().to_string();
    let _ = Command::new("kill").arg(pid).status();
    inside.wait().unwrap();
    let peers = std::fs::read_to_string(place.directory.join("peers")).unwrap_or_default();
    let log = std::fs::read_to_string(place.directory.join("ntpd.log")).unwrap_or_default();
    assert!(follows, "{peers}\n{log}");
}

//! A chain on loopback: chronyd serves the system clock, ffclockd follows it, ffclock-serve serves ffclockd's page,
//! and more ffclockd follow that: plainly, by NTS and in the interleaved mode. Nothing adjusts the system clock
//! meanwhile, so it is the truth.

use super::{fresh_directory, programs, root};
use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use std::fmt::Write;
use std::fs::{self, File};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// By then the last of the chain must be synchronised, on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(60);
/// The largest error [s]. On loopback the chain ends within some tens of microseconds of the truth; the rest is for
/// machines that do other things.
const ERROR_MAX: f64 = 1e-3;
const LOOKS: usize = 20;

/// A program of the chain, ended when dropped.
struct Link(Child);

impl Link {
    fn start(command: &mut Command, log: &Path) -> Self {
        let said = File::create(log).unwrap();
        Link(command.stdout(Stdio::null()).stderr(said).spawn().unwrap())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // chronyd ends its own helpers when it is asked to end.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

struct Chain {
    directory: PathBuf,
    links: Vec<Link>,
}

impl Chain {
    fn place(&self, name: &str) -> PathBuf {
        let place = self.directory.join(name);
        fs::create_dir_all(&place).unwrap();
        place
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn start(&mut self, name: &str, command: &mut Command) {
        self.links.push(Link::start(command, &self.directory.join(format!("{name}.log"))));
    }

    fn chronyd(&mut self, program: &Path, port: u16) {
        let place = self.place("chrony");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o750)).unwrap();
        let here = place.display();
        let text = format!(
            "local stratum 1\nallow 127.0.0.1\nbindaddress 127.0.0.1\nport {port}\ncmdport 0\n\
             pidfile {here}/chronyd.pid\nbindcmdaddress {here}/chronyd.sock\n"
        );
        let file = self.file("chrony.conf", &text);
        self.start("chronyd", Command::new(program).args(["-x", "-d", "-u", "root", "-f"]).arg(file));
    }

    /// An ffclockd that follows one server, with its files in a directory of its name.
    fn ffclockd(&mut self, name: &str, server: &str) {
        let place = self.place(name);
        let here = place.display();
        let text = format!(
            "page = \"{here}/page\"\ncontrol = \"{here}/control\"\nstate = \"off\"\n[[server]]\naddress = \"127.0.0.1\"\n\
             poll = \"250 ms\"\n{server}"
        );
        let file = self.file(&format!("{name}.toml"), &text);
        self.start(name, Command::new(programs::directory().join("ffclockd")).arg("--config").arg(file));
    }

    /// An ffclock-serve of the page of `source`, with a certificate for this host; where the certificate is.
    fn serve(&mut self, source: &str, (port, nts_port): (u16, u16)) -> PathBuf {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
        let (certificate, key) =
            (self.file("chain.pem", &certificate.pem()), self.file("key.pem", &key.serialize_pem()));
        let here = self.directory.display();
        let mut text = format!(
            "page = \"{here}/{source}/page\"\ndaemon = \"{here}/{source}/control\"\ncontrol = \"{here}/serve.control\"\n\
             listen = [\"127.0.0.1:{port}\"]\n[nts]\nlisten = [\"127.0.0.1:{nts_port}\"]\ncookies = \"{here}/cookies\"\n"
        );
        writeln!(text, "certificate = \"{}\"\nkey = \"{}\"", certificate.display(), key.display()).unwrap();
        let file = self.file("serve.toml", &text);
        self.start("serve", Command::new(programs::directory().join("ffclock-serve")).arg("--config").arg(file));
        certificate
    }

    /// What `ffclock status --json` says of a daemon, once it is synchronised.
    fn synchronised(&self, name: &str) -> Value {
        let begun = Instant::now();
        loop {
            let status = self.status(name);
            if status["clock"]["status"] == "synchronised" {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "{name} is not synchronised: {status}\n{}", self.logs());
            sleep(Duration::from_millis(250));
        }
    }

    fn status(&self, name: &str) -> Value {
        let control = self.directory.join(name).join("control");
        let mut command = Command::new(programs::directory().join("ffclock"));
        let said = command.args(["status", "--json", "--control"]).arg(control).output().unwrap();
        serde_json::from_slice(&said.stdout).unwrap_or(Value::Null)
    }

    fn logs(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.directory.join(format!("{name}.log"))).unwrap_or_default();
        ["chronyd", "first", "serve", "plain", "nts", "interleaved"]
            .map(|name| format!("{name}:\n{}", read(name)))
            .concat()
    }
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn daemons_behind_ffclock_serve_keep_the_time_within_their_bounds() {
    let chronyd = root().join("tools/peers/chronyd");
    if !Command::new(&chronyd).arg("--version").output().is_ok_and(|ended| ended.status.success()) {
        println!("SKIP: chronyd is not unpacked (make setup)");
        return;
    }
    let mut chain = Chain { directory: fresh_directory("chain"), links: Vec::new() };
    let (reference, served) = (free_port(), free_port());
    let nts_port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    chain.chronyd(&chronyd, reference);
    chain.ffclockd("first", &format!("port = {reference}\n"));
    let certificate = chain.serve("first", (served, nts_port));
    chain.synchronised("first");
    chain.ffclockd("plain", &format!("port = {served}\n"));
    let nts = format!("nts = true\nnts_port = {nts_port}\nnts_ca = \"{}\"\n", certificate.display());
    chain.ffclockd("nts", &nts);
    chain.ffclockd("interleaved", &format!("port = {served}\ninterleaved = true\n"));
    for (name, kind) in [("plain", "none"), ("nts", "nts"), ("interleaved", "none")] {
        let status = chain.synchronised(name);
        let source = &status["sources"][0];
        assert_eq!(source["authentication"]["kind"], kind, "{status}");
        assert_eq!(source["stratum"], 2, "chronyd is the first: {status}");
    }
    for _ in 0..LOOKS {
        sleep(Duration::from_millis(100));
        for name in ["first", "plain", "nts", "interleaved"] {
            let status = chain.status(name);
            let figure = |key: &str| status["clock"][key].as_f64().unwrap_or(f64::NAN);
            let (error, bound) = (figure("system_clock_behind_s").abs(), figure("bound_s"));
            assert!(error <= bound && error < ERROR_MAX, "{name}: {error} s, bound {bound} s\n{}", chain.logs());
        }
    }
    let completed = &chain.status("interleaved")["sources"][0]["interleaved"];
    assert!(completed.as_u64() > Some(0), "{completed} exchanges were completed by a later reply");
}

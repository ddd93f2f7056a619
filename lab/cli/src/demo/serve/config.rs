//! The files and configurations of the chain's programs, as text.

use super::WAYS;
use crate::failure::Failure;
use crate::lab::link::SERVER_ADDRESS;
use crate::lab::worker::{WorkerNetwork, run};
use ffclock_units::Span;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The clients' end of the second link.
pub(super) const CLIENT_ADDRESS: &str = "10.77.1.99";
/// The port of key establishment.
const NTS_PORT: u16 = 4460;
/// Requests each quarter of a second, in the words of chronyd.
const CHRONY_POLL: &str = "minpoll -2 maxpoll -2";
/// The default limit of ffclock-serve leaves room for this and for the clients.
const LIMITED_EVERY: Span = Span::from_millis(15);
/// The certificates that protect ways 1 and 3, by the way.
const CERTIFIED: [usize; 2] = [1, 3];

/// Where everything is: addresses, ports and files.
pub(super) struct ChainPlaces {
    run: PathBuf,
    reference: String,
    /// The host's address for each way.
    pub(super) ways: [String; 4],
    port: u16,
    has_nts: bool,
}

impl ChainPlaces {
    /// In namespaces all have the usual port, which ntpd needs. On loopback addresses are this process's own, so that
    /// several demonstrations can run at the same time.
    pub(super) fn new(run: PathBuf, network: WorkerNetwork) -> Self {
        let [.., high, low] = std::process::id().to_be_bytes();
        let (reference, ways, port) = match network {
            WorkerNetwork::Own => (SERVER_ADDRESS.to_owned(), [1, 2, 3, 4].map(|last| format!("10.77.1.{last}")), 123),
            WorkerNetwork::Shared => {
                let own = |last| format!("127.{high}.{low}.{last}");
                (own(1), [2, 3, 4, 5].map(own), 11_123)
            }
        };
        ChainPlaces { run, reference, ways, port, has_nts: false }
    }

    /// Makes certificates for the ways with NTS.
    pub(super) fn certify(&mut self) -> Result<(), Failure> {
        for way in CERTIFIED {
            let address = &self.ways[way];
            // Programs differ in where they look for the name.
            let text = format!(
                "[req]\ndistinguished_name = name\nprompt = no\nx509_extensions = extensions\n[name]\nCN = {address}\n\
                 [extensions]\nsubjectAltName = IP:{address}\n"
            );
            let config = self.write(&format!("certificate-{way}.conf"), &text)?;
            let [config, key, certificate] = [config, self.key(way), self.certificate(way)].map(|path| shown(&path));
            let request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
            let files = ["-days", "2", "-config", &config, "-keyout", &key, "-out", &certificate];
            run("openssl", &[&request[..], &files].concat())?;
        }
        self.has_nts = true;
        Ok(())
    }

    /// The numbers of the ways that are served.
    pub(super) fn ways_in_use(&self) -> impl Iterator<Item = usize> + use<> {
        let has_nts = self.has_nts;
        (0..WAYS.len()).filter(move |way| has_nts || !WAYS[*way].is_protected)
    }

    /// A way, and its address.
    pub(super) fn way(&self, way: usize) -> (usize, String) {
        (way, self.ways[way].clone())
    }

    /// The address and port of a way.
    pub(super) fn endpoint(&self, way: usize) -> String {
        format!("{}:{}", self.ways[way], self.port)
    }

    /// The directory of all files.
    pub(super) fn directory(&self) -> &Path {
        &self.run
    }

    /// A program's own directory.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.run.join(name)
    }

    /// What a program says.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.run.join(format!("{name}.log"))
    }

    /// The page of an ffclockd.
    pub(super) fn page(&self, name: &str) -> PathBuf {
        self.run.join(format!("{name}.page"))
    }

    /// Writes a file into the directory.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.run.join(name);
        fs::write(&path, text)?;
        Ok(path)
    }

    fn certificate(&self, way: usize) -> PathBuf {
        self.run.join(format!("certificate-{way}.pem"))
    }

    fn key(&self, way: usize) -> PathBuf {
        self.run.join(format!("key-{way}.pem"))
    }

    /// Makes a program's own directory, closed to others as chronyd demands.
    fn own_place(&self, name: &str) -> Result<String, Failure> {
        let place = self.place(name);
        fs::DirBuilder::new().mode(0o750).create(&place)?;
        Ok(shown(&place))
    }

    /// An ffclockd with this table of its server.
    pub(super) fn ffclockd(&self, name: &str, server: &str) -> String {
        format!(
            "counter = \"tsc\"\npage = \"{}\"\ncontrol = \"{}\"\nstate = \"off\"\n{server}",
            shown(&self.page(name)),
            shown(&self.run.join(format!("{name}.control"))),
        )
    }

    fn server_table(&self, address: &str, rest: &str) -> String {
        format!("[[server]]\naddress = \"{address}\"\nport = {}\npoll = \"250 ms\"\n{rest}", self.port)
    }

    /// The reference as the server of an ffclockd.
    pub(super) fn reference_server(&self) -> String {
        self.server_table(&self.reference, "")
    }

    /// A way as the server of an ffclockd.
    pub(super) fn server(&self, way: usize) -> String {
        let rest = if WAYS[way].is_protected {
            format!("nts = true\nnts_port = {NTS_PORT}\nnts_ca = \"{}\"\n", shown(&self.certificate(way)))
        } else {
            String::new()
        };
        self.server_table(&self.ways[way], &rest)
    }

    /// The server of the host's page. One address asks it at these intervals, and the clients behind that address too,
    /// so the limit is for others where that is often.
    pub(super) fn ffclock_serve(&self, ask_every: Span) -> String {
        let here = shown(&self.run);
        let listen: Vec<String> =
            self.ways_in_use().filter(|way| *way < 2).map(|way| format!("\"{}\"", self.endpoint(way))).collect();
        let mut text = format!(
            "page = \"{}\"\ndaemon = \"{here}/host.control\"\ncontrol = \"{here}/serve.control\"\nlisten = [{}]\n",
            shown(&self.page(super::HOST)),
            listen.join(", ")
        );
        if ask_every < LIMITED_EVERY {
            text += "rate_interval = \"0 s\"\n";
        }
        if self.has_nts {
            text += &format!(
                "[nts]\nlisten = [\"{}:{NTS_PORT}\"]\ncookies = \"{here}/cookies\"\ncertificate = \"{}\"\nkey = \"{}\"\n",
                self.ways[1],
                shown(&self.certificate(1)),
                shown(&self.key(1))
            );
        }
        text
    }

    fn chronyd(&self, name: &str, rest: &str) -> Result<String, Failure> {
        let place = self.own_place(name)?;
        Ok(format!("cmdport 0\npidfile {place}/pid\nbindcmdaddress {place}/socket\n{rest}"))
    }

    /// chronyd that serves the system clock.
    pub(super) fn reference_chronyd(&self, name: &str) -> Result<String, Failure> {
        let (address, port) = (&self.reference, self.port);
        self.chronyd(name, &format!("local stratum 1\nallow all\nbindaddress {address}\nport {port}\n"))
    }

    /// chronyd on the host, which follows the reference and serves its own time at the address of a way.
    pub(super) fn host_chronyd(&self, name: &str, way: usize) -> Result<String, Failure> {
        let (reference, address, port) = (&self.reference, &self.ways[way], self.port);
        let mut rest = format!(
            "server {reference} port {port} iburst {CHRONY_POLL}\nallow all\nbindaddress {address}\nport {port}\n"
        );
        if WAYS[way].is_protected {
            let (certificate, key) = (shown(&self.certificate(way)), shown(&self.key(way)));
            rest += &format!("ntsport {NTS_PORT}\nntsprocesses 0\nntsservercert {certificate}\nntsserverkey {key}\n");
        }
        self.chronyd(name, &rest)
    }

    /// chronyd that measures every way and follows none, so that its own clock stays the system clock.
    pub(super) fn client_chronyd(&self, name: &str) -> Result<String, Failure> {
        let place = shown(&self.place(name));
        let mut rest = format!("port 0\nlogdir {place}\nlog measurements statistics\nlogbanner 0\n");
        for way in self.ways_in_use() {
            let (address, port) = (&self.ways[way], self.port);
            let nts = if WAYS[way].is_protected {
                rest += &format!("ntstrustedcerts {}\n", shown(&self.certificate(way)));
                format!(" nts ntsport {NTS_PORT}")
            } else {
                String::new()
            };
            rest += &format!("server {address} port {port}{nts} {CHRONY_POLL} noselect\n");
        }
        self.chronyd(name, &rest)
    }

    /// ntpd that measures every way and sets nothing.
    pub(super) fn client_ntpd(&self, name: &str) -> Result<String, Failure> {
        let place = self.own_place(name)?;
        let server = |way: usize| {
            let nts = if WAYS[way].is_protected {
                format!(" nts ca {}", shown(&self.certificate(way)))
            } else {
                String::new()
            };
            format!("server {}{nts} minpoll 0 maxpoll 0 iburst\n", self.ways[way])
        };
        let servers: String = self.ways_in_use().map(server).collect();
        Ok(format!(
            "{servers}disable ntp\ndisable kernel\nstatsdir {place}/\nfilegen peerstats file peers type none enable\n\
             driftfile {place}/drift\n"
        ))
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

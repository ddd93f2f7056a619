//! `ffclock serve`: how the NTP server is doing.

use crate::control::{self, Asked};
use crate::failure::Failure;
use crate::{Global, output, text};
use ffclock_control::serve::{FastPathReport, NtsReport, PtpPortReport, ServeReport};
use ffclock_sys::places;
use std::path::PathBuf;

/// Options of `ffclock serve`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ ffclock serve status
  $ ffclock serve status --json | jq .counts.answered")]
pub(crate) struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(clap::Subcommand)]
enum Part {
    /// Show what the server claims, and what it has answered and refused
    Status(StatusArgs),
}

/// Options of `ffclock serve status`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ ffclock serve status
  $ ffclock serve status --json | jq .claim.root_distance_s

Exit code: 0 when replies claim a time, 1 when ffclock-serve does not answer, 3 when replies say
that the server is not synchronised. docs/control.md has the fields of --json.")]
struct StatusArgs {
    /// The status socket of ffclock-serve
    #[arg(long, value_name = "SOCKET", default_value = places::SERVE_CONTROL)]
    socket: PathBuf,
}

const SERVER: Asked = Asked { program: "ffclock-serve", option: "--socket" };

/// Prints the state of the server.
pub(crate) fn run(global: &Global, Args { part: Part::Status(args) }: &Args) -> Result<(), Failure> {
    let report: ServeReport = control::status_of(&SERVER, &args.socket, "serve-status")?;
    if global.json {
        output::json(&report)?;
    } else {
        output::write(&render(&report))?;
    }
    if report.claim.is_some() { Ok(()) } else { Err(Failure::silent(Failure::UNSYNCHRONISED)) }
}

fn render(report: &ServeReport) -> String {
    let mut shown = String::new();
    match &report.claim {
        Some(claim) => {
            let distance = text::span(claim.root_distance_s);
            shown += &field("Claim", &format!("stratum {}, root distance {distance}", claim.stratum));
            shown += &field("Follows", &format!("{} (reference identifier)", claim.reference_id));
            shown += &field("Leap", &format!("{}, smear {}", claim.leap, report.smear));
        }
        None => {
            shown += &field("Claim", &format!("none: {}", report.unserved.as_deref().unwrap_or("not synchronised")))
        }
    }
    shown += &field("Listens", &format!("{} ({} threads)", report.listen.join(", "), report.threads));
    shown += &field("Page", &report.page);
    if let Some(nts) = &report.nts {
        shown += &render_nts(nts);
    }
    shown += &format!("\n{:<20}{:>14}\n", "Packets", "since start");
    for (name, count) in report.counts.iter().filter(|(name, count)| **count > 0 || name.as_str() == "received") {
        shown += &format!("{:<20}{count:>14}\n", text::printable(&name.replace('_', " ")));
    }
    shown += &format!("{:<20}{:>14}\n", "dropped by kernel", report.kernel_dropped);
    if let Some(path) = &report.fast_path {
        shown += &render_fast_path(path);
    }
    report.ptp.iter().for_each(|port| shown += &render_ptp(port));
    shown
}

/// The fast path after the packets of the sockets.
fn render_ptp(port: &PtpPortReport) -> String {
    let accuracy = port.clock_accuracy_s.map_or_else(|| "unknown".to_owned(), text::span);
    let state = match (port.state.as_str(), &port.better_master) {
        ("passive", Some(better)) => format!("passive: {} is better", text::printable(better)),
        ("passive", None) => "passive".to_owned(),
        (state, _) => {
            let (class, grants) = (port.clock_class, port.grants);
            format!("{}: class {class}, accuracy {accuracy}, {grants} unicast grants", text::printable(state))
        }
    };
    let domain = port.domain;
    let mut shown = format!("\n{:<20}{}, domain {domain}\n", text::printable(&format!("PTP {}", port.port)), state);
    shown += &format!("{:<20}{}\n", "  port identity", text::printable(&port.identity));
    let counts = port.counts.iter().filter(|(_, count)| **count > 0);
    for (name, count) in counts {
        shown += &format!("{:<20}{count:>14}\n", text::printable(&format!("  {}", name.replace('_', " "))));
    }
    shown
}

fn render_fast_path(path: &FastPathReport) -> String {
    let mut shown = match (&path.attached, &path.unavailable, &path.no_line) {
        (Some(place), _, None) => "\n".to_owned() + &field("Driver", &format!("answers at {place}")),
        (Some(place), _, Some(reason)) => {
            "\n".to_owned() + &field("Driver", &format!("at {place}, but the sockets answer: {reason}"))
        }
        (None, reason, _) => {
            "\n".to_owned() + &field("Driver", &format!("none: {}", reason.as_deref().unwrap_or("not attached")))
        }
    };
    for (name, count) in path.counts.iter().filter(|(name, count)| **count > 0 || name.as_str() == "replied") {
        shown += &format!("{:<20}{count:>14}\n", text::printable(&name.replace('_', " ")));
    }
    shown
}

fn render_nts(nts: &NtsReport) -> String {
    let rotation = text::duration(nts.rotation_s);
    let key = nts.cookie_key.map_or_else(|| "none".to_owned(), |number| number.to_string());
    let mut shown = field("NTS", &format!("{}, cookie key {key}, rotated every {rotation}", nts.listen.join(", ")));
    if let Some(end) = &nts.certificate_end {
        shown += &field("Shows", &format!("a certificate until {end}"));
    }
    shown += &format!("\n{:<20}{:>14}\n", "Establishments", "since start");
    let is_shown = |(name, count): &(&String, &u64)| **count > 0 || name.as_str() == "established";
    for (name, count) in nts.establishments.iter().filter(is_shown) {
        shown += &format!("{:<20}{count:>14}\n", text::printable(&name.replace('_', " ")));
    }
    shown
}

fn field(name: &str, value: &str) -> String {
    format!("{name:<9}{}\n", text::printable(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_control::serve::ClaimReport;

    fn report() -> ServeReport {
        ServeReport {
            version: "0".into(),
            uptime_s: 1.0,
            page: "/run/page".into(),
            listen: vec!["0.0.0.0:123".into(), "[::]:123".into()],
            threads: 2,
            claim: Some(ClaimReport {
                stratum: 2,
                reference_id: "c0000201".into(),
                leap: "none".into(),
                root_distance_s: 45e-6,
            }),
            unserved: None,
            smear: "off".into(),
            nts: None,
            kernel_dropped: 3,
            counts: [("received".to_owned(), 12), ("not_request".to_owned(), 0), ("kiss_rate".to_owned(), 1)].into(),
            fast_path: None,
            ptp: Vec::new(),
        }
    }

    #[test]
    fn the_state_is_laid_out_by_name() {
        assert_eq!(
            render(&report()),
            "Claim    stratum 2, root distance 45 us\n\
             Follows  c0000201 (reference identifier)\n\
             Leap     none, smear off\n\
             Listens  0.0.0.0:123, [::]:123 (2 threads)\n\
             Page     /run/page\n\n\
             Packets                since start\n\
             kiss rate                        1\n\
             received                        12\n\
             dropped by kernel                3\n"
        );
        let nts = NtsReport {
            listen: vec!["[::]:4460".into()],
            cookie_key: Some(20_000),
            rotation_s: 86_400.0,
            old_keys: 7,
            certificate_end: Some("2027-01-01T00:00:00Z".into()),
            certificate_end_unix_s: Some(1_798_761_600),
            establishments: [("established".to_owned(), 0), ("late".to_owned(), 0), ("tls_fault".to_owned(), 2)].into(),
        };
        let shown = render(&ServeReport { nts: Some(nts), ..report() });
        let part = "NTS      [::]:4460, cookie key 20000, rotated every 1 d 0 h\n\
                    Shows    a certificate until 2027-01-01T00:00:00Z\n\n\
                    Establishments         since start\n\
                    established                      0\n\
                    tls fault                        2\n";
        assert!(shown.contains(part), "{shown}");
        let path = FastPathReport {
            attached: Some("eth0 (native)".into()),
            counts: [("replied".to_owned(), 5), ("limited".to_owned(), 0), ("passed_form".to_owned(), 2)].into(),
            ..FastPathReport::default()
        };
        assert_eq!(
            render_fast_path(&path),
            "\nDriver   answers at eth0 (native)\n\
             passed form                      2\n\
             replied                          5\n"
        );
        let waiting = FastPathReport { no_line: Some("begins".into()), ..path };
        assert!(
            render_fast_path(&waiting).starts_with("\nDriver   at eth0 (native), but the sockets answer: begins\n")
        );
        let none = FastPathReport { unavailable: Some("no device eth9".into()), ..FastPathReport::default() };
        assert_eq!(render_fast_path(&none), "\nDriver   none: no device eth9\n");
        let serving = PtpPortReport {
            port: "eth0/ipv4".into(),
            identity: "b268b8.ffc1.d92b00-1".into(),
            state: "serving".into(),
            clock_class: 6,
            clock_accuracy_s: Some(1e-4),
            counts: [("received".to_owned(), 5), ("denied".to_owned(), 0)].into(),
            ..PtpPortReport::default()
        };
        assert_eq!(
            render_ptp(&serving),
            "\nPTP eth0/ipv4       serving: class 6, accuracy 100 us, 0 unicast grants, domain 0\n  \
               port identity     b268b8.ffc1.d92b00-1\n  \
               received                       5\n"
        );
        let passive = PtpPortReport { state: "passive".into(), better_master: Some("a-1".into()), ..serving };
        assert!(render_ptp(&passive).starts_with("\nPTP eth0/ipv4       passive: a-1 is better, domain 0\n"));
        let silent = ServeReport { claim: None, unserved: Some("the page cannot be read".into()), ..report() };
        assert!(render(&silent).starts_with("Claim    none: the page cannot be read\n"));
    }
}

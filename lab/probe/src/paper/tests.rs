use super::*;
use crate::findings::Findings;
use crate::passages::PacketPassages;
use ffclock_units::Period;

/// Where the sites lie against the driver [ns], and how widely they vary.
#[derive(Clone, Copy)]
struct Host {
    tap: i64,
    socket_out: i64,
    user: i64,
    width: i64,
}

/// FreeBSD 9 as the paper has it, roughly.
const PAPER: Host = Host { tap: 5_000, socket_out: 9_000, user: 20_000, width: 1_000 };

/// Words of the claims about the order of locations and directions.
const OF_LOCATIONS: [&str; 6] = [
    "smallest and least variable delay on the way out",
    "smallest and least variable delay on the way in",
    "largest and most variable delay on the way out",
    "largest and most variable delay on the way in",
    "every stress keeps the order",
    "larger and more variable on the way out",
];

fn findings(host: Host) -> Findings {
    findings_of(host, 900)
}

fn findings_of(host: Host, packets: i64) -> Findings {
    let mut passages = PacketPassages::default();
    for number in 0..packets {
        let share = (number * 37) % 101;
        let vary = |scale: i64| host.width * scale * share / 100;
        passages
            .restore([
                (Site::UserSend, 100_000 - host.user - vary(6)),
                (Site::TapOut, 100_000 - host.tap - vary(2)),
                (Site::SocketOut, 100_000 - host.socket_out - vary(4)),
                (Site::DriverOut, 100_000),
                (Site::DriverIn, 300_000),
                (Site::TapIn, 300_000 + host.tap / 4 + vary(1)),
                (Site::SocketIn, 300_000 + host.tap + vary(3)),
                (Site::UserReceive, 300_000 + host.user / 2 + vary(5)),
            ])
            .unwrap();
    }
    Findings::of(&passages, Period::from_hertz(1e9).expect("a frequency"))
}

/// Stamps of the multicast copy, so long before the driver [ns].
fn findings_of_copies(host: Host, copy: i64) -> Findings {
    let mut passages = PacketPassages::default();
    for number in 0..900 {
        let vary = |scale: i64| host.width * scale * ((number * 37) % 101) / 100;
        passages
            .restore([
                (Site::UserSend, 100_000 - host.user - vary(6)),
                (Site::LoopOut, 100_000 - copy - vary(2)),
                (Site::SocketOut, 100_000 - host.socket_out - vary(4)),
                (Site::DriverOut, 100_000),
                (Site::DriverIn, 300_000),
                (Site::SocketIn, 300_000 + host.tap + vary(3)),
                (Site::UserReceive, 300_000 + host.user / 2 + vary(5)),
            ])
            .unwrap();
    }
    Findings::of(&passages, Period::from_hertz(1e9).expect("a frequency"))
}

fn claims_of(phases: &[(Option<Load>, Findings)]) -> Vec<PaperClaim> {
    claims(&Digest::of(phases.iter().map(|(load, findings)| (*load, findings))))
}

fn find<'a>(claims: &'a [PaperClaim], words: &str) -> &'a PaperClaim {
    claims.iter().find(|one| one.claim.contains(words)).unwrap_or_else(|| panic!("no claim {words}: {claims:?}"))
}

fn verdict(claims: &[PaperClaim], words: &str) -> PaperVerdict {
    find(claims, words).verdict
}

#[test]
fn a_host_like_the_papers_confirms_its_findings() {
    let phases = [
        (None, findings(PAPER)),
        (Some(Load::Io), findings(Host { width: 4_000, ..PAPER })),
        (Some(Load::Syscall), findings(Host { width: 9_000, tap: 4_800, user: 15_000, socket_out: 7_000 })),
    ];
    let claims = claims_of(&phases);
    for words in OF_LOCATIONS.into_iter().chain(["system calls disrupt more", "asymmetry hardly depends"]) {
        assert_eq!(verdict(&claims, words), PaperVerdict::Confirmed, "{words}: {claims:#?}");
    }
    assert_eq!(verdict(&claims, "IP traffic leaves"), PaperVerdict::NotMeasured);
}

#[test]
fn a_stamp_in_the_driver_is_nearer_than_the_tap_and_no_fault() {
    let claims = claims_of(&[(None, findings(Host { socket_out: -100, width: 100, ..PAPER }))]);
    assert_eq!(verdict(&claims, "least variable delay on the way out"), PaperVerdict::NotOnThisKernel);
}

/// The paper's socket has the stamp of a copy that comes back by multicast. Linux's own socket stamp is another one:
/// even where that comes after the packet is back, nothing was measured of the paper's.
#[test]
fn only_a_multicast_copy_shows_the_papers_fault() {
    let late = Host { socket_out: -356_000, width: 10, ..PAPER };
    let claim = |phases: &[(Option<Load>, Findings)]| {
        let PaperClaim { verdict, evidence, .. } = find(&claims_of(phases), "packet is back").clone();
        (verdict, evidence)
    };
    for host in [PAPER, late] {
        let (verdict, evidence) = claim(&[(None, findings(host))]);
        assert_eq!(verdict, PaperVerdict::NotMeasured, "{evidence}");
        assert!(evidence.contains("--multicast"), "{evidence}");
    }
    let (verdict, evidence) = claim(&[(None, findings_of_copies(Host { width: 10, ..PAPER }, -100))]);
    assert_eq!(verdict, PaperVerdict::NotOnThisKernel);
    assert!(evidence.contains("0 violations") && evidence.contains("up to 0.10 us behind"), "{evidence}");
    let (verdict, _) = claim(&[(None, findings_of_copies(Host { width: 10, ..PAPER }, -356_000))]);
    assert_eq!(verdict, PaperVerdict::Confirmed);
    // The fault is the copy's: that of the socket's own stamp is none of the paper's.
    let (verdict, _) = claim(&[(None, findings_of_copies(late, 5_000))]);
    assert_eq!(verdict, PaperVerdict::NotOnThisKernel);
}

/// Several quiet phases together have a nearer minimum than one phase under load, though nothing differs.
#[test]
fn phases_that_do_not_differ_decide_nothing() {
    let mut phases: Vec<_> = (0..6).map(|_| (None, findings(PAPER))).collect();
    phases.push((Some(Load::Syscall), findings(PAPER)));
    phases.push((Some(Load::Io), findings(PAPER)));
    let claims = claims_of(&phases);
    for words in ["smallest delays shrink", "system calls disrupt more"] {
        assert_eq!(verdict(&claims, words), PaperVerdict::Undecided, "{words}: {claims:#?}");
    }
}

/// Figures that differ by less than chance does: few packets that vary widely. As decided facts they would be a coin's
/// toss.
#[test]
fn overlapping_intervals_show_nothing() {
    let host = Host { tap: 4_000, socket_out: 4_400, user: 9_000, width: 1_000 };
    let few = |count: usize, shift: i64| {
        let mut passages = PacketPassages::default();
        for number in 0..count as i64 {
            let vary = |scale: i64, phase: i64| 40 * scale * ((number * 37 + phase) % 101);
            passages
                .restore([
                    (Site::UserSend, 100_000 - host.user - shift - vary(3, 7)),
                    (Site::TapOut, 100_000 - host.tap - vary(3, 0)),
                    (Site::SocketOut, 100_000 - host.socket_out - vary(3, 50)),
                    (Site::DriverOut, 100_000),
                    (Site::DriverIn, 300_000),
                    (Site::TapIn, 300_000 + host.tap + shift / 4 + vary(3, 20)),
                    (Site::SocketIn, 300_000 + host.socket_out + vary(3, 60)),
                    (Site::UserReceive, 300_000 + host.user + vary(3, 90)),
                ])
                .unwrap();
        }
        Findings::of(&passages, Period::from_hertz(1e9).expect("a frequency"))
    };
    let phases = [(None, few(20, 0)), (Some(Load::Io), few(20, 3_000)), (Some(Load::Ip), few(20, 800))];
    let claims = claims_of(&phases);
    for words in OF_LOCATIONS.into_iter().chain(["IP traffic leaves"]) {
        assert_eq!(verdict(&claims, words), PaperVerdict::Undecided, "{words}: {claims:#?}");
    }
}

/// Of many packets 3 us are no chance; of nine that vary widely even no change is known.
#[test]
fn an_asymmetry_is_steady_as_far_as_its_interval_says() {
    let verdict_under = |host: Host, packets| {
        let host = Host { socket_out: 30_000, user: 90_000, ..host };
        let quiet = findings_of(Host { tap: PAPER.tap, ..host }, packets);
        verdict(&claims_of(&[(None, quiet), (Some(Load::Io), findings_of(host, packets))]), "asymmetry hardly depends")
    };
    assert_eq!(verdict_under(PAPER, 900), PaperVerdict::Confirmed);
    assert_eq!(verdict_under(Host { tap: 9_000, ..PAPER }, 900), PaperVerdict::NotOnThisKernel);
    assert_eq!(verdict_under(Host { width: 4_000, ..PAPER }, 9), PaperVerdict::Undecided);
}

#[test]
fn nothing_measured_confirms_nothing() {
    for PaperClaim { claim, verdict, evidence, .. } in claims_of(&[]) {
        assert_eq!(verdict, PaperVerdict::NotMeasured, "{claim}");
        assert!(!evidence.is_empty(), "{claim}");
    }
}

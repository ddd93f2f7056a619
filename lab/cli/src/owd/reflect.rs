//! `ffclock-lab owd reflect`: the other end.

use super::failure;
use crate::failure::Failure;
use crate::{GlobalOptions, output};
use ffclock_owd::PORT;
use ffclock_owd::page_time::Unsynchronised;
use ffclock_owd::reflector::{Numbering, RATE, Reflector, ReflectorCounts, ReflectorPlan};
use ffclock_sys::{Interest, Signal, Signals, StampMode, poll};
use std::fs::File;
use std::io::BufWriter;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// Options of `ffclock-lab owd reflect`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab owd reflect --listen '[::]:862'
  reflects test packets on [::]:862; end it with Ctrl-C
  reflected 10000 packets
  $ ffclock-lab owd reflect --json | jq .limited        (at the end)

It answers senders of STAMP (RFC 8762) and of TWAMP-light (RFC 5357) whose packets have room for a reply,
41 bytes, with replies of the same length. Port 862 needs root or CAP_NET_BIND_SERVICE.")]
pub(super) struct Args {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::from(([0, 0, 0, 0], PORT)))]
    listen: SocketAddr,
    /// Packets that are answered per second, of each address; to the sender, those beyond look lost on the way
    #[arg(long, value_name = "NUMBER", default_value_t = RATE, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Repeat the sender's numbers instead of counting the packets of each session
    #[arg(long)]
    stateless: bool,
    /// Answer although the clock is not synchronised; replies say so
    #[arg(long)]
    unsynchronised: bool,
    /// Write the counter's readings of each packet to this CSV file, for `owd report --truth`
    #[arg(long, value_name = "FILE")]
    passages: Option<PathBuf>,
}

/// Answers until a signal ends it.
pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let plan = ReflectorPlan {
        listen: args.listen,
        page: global.page.clone(),
        rate: args.rate,
        unsynchronised: if args.unsynchronised { Unsynchronised::Allow } else { Unsynchronised::Refuse },
        stamps: StampMode::Kernel,
        numbering: if args.stateless { Numbering::Stateless } else { Numbering::Stateful },
    };
    let mut reflector = Reflector::open(&plan).map_err(failure)?;
    if let Some(path) = &args.passages {
        let file = File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        reflector.record_passages(Box::new(BufWriter::new(file))).map_err(failure)?;
    }
    let mut signals = Signals::install()?;
    let address = reflector.address().map_err(failure)?;
    if !global.json {
        output::line(&format!("reflects test packets on {address}; end it with Ctrl-C"))?;
    }
    loop {
        poll(&mut [Interest::readable(reflector.as_fd()), Interest::readable(signals.as_fd())], None)?;
        reflector.turn().map_err(failure)?;
        if is_asked_to_end(&mut signals) {
            break;
        }
    }
    reflector.finish().map_err(failure)?;
    let counts = reflector.counts();
    global.answer(&counts, || text(&counts))
}

fn text(counts: &ReflectorCounts) -> String {
    let rest = crate::columns::counted([
        (counts.unsynchronised, "of them with a clock that is not synchronised"),
        (counts.unstamped, "of them without the kernel's stamp"),
        (counts.too_short, "packets too short for a reply"),
        (counts.too_long, "packets too long"),
        (counts.limited, "beyond the rate of their address"),
        (counts.not_sent, "replies not sent"),
    ]);
    format!("reflected {} packets{rest}\n", counts.reflected)
}

/// Whether a signal came that ends the command.
pub(crate) fn is_asked_to_end(signals: &mut Signals) -> bool {
    std::iter::from_fn(|| signals.take()).any(|signal| signal != Signal::Hangup)
}

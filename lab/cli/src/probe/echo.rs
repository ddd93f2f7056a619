//! `ffclock-lab probe echo`: the other end.

use crate::failure::Failure;
use crate::{GlobalOptions, output};
use ffclock_probe::echo::{EchoCounts, EchoServer};
use ffclock_sys::{Interest, Signal, Signals, poll};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// The port of test packets: one that is assigned to no other service.
pub(super) const PORT: u16 = 8_777;

/// Options of `ffclock-lab probe echo`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab probe echo --listen '[::]:8777'
  echoes test packets on [::]:8777; end it with Ctrl-C
  answered 10000 packets, ignored 0
  $ ffclock-lab probe echo --json | jq .answered        (at the end)

It answers test packets of `ffclock-lab probe run` only, each with one that is a byte shorter.")]
pub(super) struct Args {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::from(([0, 0, 0, 0], PORT)))]
    listen: SocketAddr,
    /// Answer what is sent to this multicast group as well, on the device that the routes name for it
    #[arg(long, value_name = "GROUP")]
    multicast: Option<Ipv4Addr>,
}

/// Answers until a signal ends it.
pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let echo = EchoServer::bind(args.listen).map_err(|error| format!("cannot listen on {}: {error}", args.listen))?;
    if let Some(group) = args.multicast {
        echo.join(group).map_err(|error| format!("cannot join {group}: {error} (ip route add {group} dev DEVICE)"))?;
    }
    let address = echo.address()?;
    let mut signals = Signals::install()?;
    if !global.json {
        output::line(&format!("echoes test packets on {address}; end it with Ctrl-C"))?;
    }
    let stop = AtomicBool::new(false);
    let answered = std::thread::scope(|scope| {
        let server = scope.spawn(|| echo.serve(&stop));
        while !server.is_finished() {
            // A server that fails is noticed within a second.
            let deadline = ffclock_sys::mono_now() + ffclock_units::Span::from_secs(1);
            let woken = poll(&mut [Interest::readable(signals.as_fd())], Some(deadline));
            let is_asked = std::iter::from_fn(|| signals.take()).any(|signal| signal != Signal::Hangup);
            if woken.is_err() || is_asked {
                stop.store(true, Ordering::Release);
                break;
            }
        }
        server.join()
    });
    let answered = answered.map_err(|_| Failure::from("the echo server ended unexpectedly".to_owned()))??;
    let EchoCounts { answered, ignored } = answered;
    global.answer(&json!({ "answered": answered, "ignored": ignored }), || {
        format!("answered {answered} packets, ignored {ignored}\n")
    })
}

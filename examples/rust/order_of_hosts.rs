//! Which of two events was first, of which each was seen by a host of its own.
//!
//! Usage: order_of_hosts event [PAGE]       prints the range in which the event was: from and until, in ns of TAI
//!        order_of_hosts compare FROM UNTIL FROM UNTIL

use ffclock::{Clock, Status, earliest, latest};
use std::error::Error;
use std::path::PathBuf;

/// The range of an event that happens now, which can be sent to other hosts: rounded outwards.
fn range_of_now(clock: &Clock) -> Result<(i128, i128), Box<dyn Error>> {
    let time = clock.time_of(clock.stamp())?;
    if time.reading.status == Status::Unsynchronised {
        return Err("the clock is unsynchronised: nothing is certain about this event".into());
    }
    Ok((earliest(&time).since_origin().as_nanos() - 1, latest(&time).since_origin().as_nanos() + 1))
}

fn show((from, until): (i128, i128)) {
    println!("{from} {until}");
}

fn verdict(first: (i128, i128), second: (i128, i128)) -> &'static str {
    match (first, second) {
        ((_, until), (from, _)) if until < from => "the first was first",
        ((from, _), (_, until)) if until < from => "the second was first",
        _ => "it cannot be known",
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["event"] => show(range_of_now(&Clock::open()?)?),
        ["event", page] => show(range_of_now(&Clock::open_at(&PathBuf::from(page))?)?),
        ["compare", a, b, c, d] => println!("{}", verdict((a.parse()?, b.parse()?), (c.parse()?, d.parse()?))),
        _ => return Err("usage: order_of_hosts event [PAGE] | compare FROM UNTIL FROM UNTIL".into()),
    }
    Ok(())
}

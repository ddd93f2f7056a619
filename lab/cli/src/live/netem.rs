//! The timetable of a router with netem: what the two directions do from when on. Written as lines
//! `SECONDS WAY WORDS...`, WAY being `to` (the server) or `from` (it), and the words those of tc-netem(8): delay with
//! jitter and distribution, loss, rate, and the like.

use super::path_file::{LOST, PathTime, SLOT_NS, delays};
use super::plan::LivePlan;
use crate::failure::Failure;
use ffclock_units::Span;
use std::fmt::Write;

const WAYS: [&str; 2] = ["to", "from"];

/// One direction from a time on.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    at_s: f64,
    /// 0 to the server, 1 from it.
    way: usize,
    words: String,
}

/// All rows, in order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Timetable {
    rows: Vec<Row>,
}

impl Timetable {
    /// Reads one that was written; empty lines and what follows a `#` do not count.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let lines =
            text.lines().enumerate().map(|(index, line)| (index, line.split('#').next().unwrap_or_default().trim()));
        let rows = lines.filter(|(_, line)| !line.is_empty()).map(|(index, line)| {
            Row::parse(line).ok_or_else(|| {
                Failure::usage(format!("line {} of the timetable: {line:?} is not SECONDS to|from WORDS...", index + 1))
            })
        });
        let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
        rows.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        Ok(Timetable { rows })
    }

    /// The one that the user wrote, or that of the plan; none where its links are direct.
    pub(super) fn chosen(
        written: Option<&str>,
        plan: &LivePlan,
        length: Span,
        seed: u64,
    ) -> Result<Option<Self>, Failure> {
        match written {
            Some(text) => Self::parse(text).map(Some),
            None => Self::of_plan(plan, length, seed),
        }
    }

    /// Of a plan: in each piece of the run, the smallest delay, the mean and the loss of the delays that our own router
    /// would have, evenly spread. None where its links are direct.
    fn of_plan(plan: &LivePlan, length: Span, seed: u64) -> Result<Option<Self>, Failure> {
        let whole = PathTime { length, begin: Span::ZERO };
        let Some(delays) = delays(plan, whole, seed)? else { return Ok(None) };
        let slot = |at_s: f64| ((at_s * 1e9) as usize / SLOT_NS as usize).min(delays.len());
        let mut begins = plan.path.changes(length.as_seconds());
        begins.push(length.as_seconds() + 1.0);
        let mut rows = Vec::new();
        for piece in begins.windows(2) {
            let slots = &delays[slot(piece[0])..slot(piece[1])];
            let of = |way: usize| slots.iter().map(|both| both[way]).collect::<Vec<_>>();
            rows.extend([0, 1].map(|way| Row { at_s: piece[0], way, words: words_for(&of(way)) }));
        }
        Ok(Some(Timetable { rows }))
    }

    /// The guest's part: what it does from `watched` on, for this many links.
    pub(super) fn script(&self, links: usize, watched: Span) -> String {
        let mut text = PREPARED.replace("{links}", &links.to_string());
        let past = |row: &&Row| row.at_s <= watched.as_seconds();
        for way in [0, 1] {
            if let Some(row) = self.rows.iter().filter(past).rfind(|row| row.way == way) {
                _ = writeln!(text, "{}", row.command());
            }
        }
        text += STARTED;
        for row in self.rows.iter().filter(|row| !past(row)) {
            let hundredths = (row.at_s - watched.as_seconds()) * 100.0;
            _ = writeln!(text, "wait_until {hundredths:.0} && {}", row.command());
        }
        text + ENDED
    }
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let at_s = words.next()?.parse().ok().filter(|at_s| (0.0..1e7).contains(at_s))?;
        let way = words.next().and_then(|word| WAYS.iter().position(|way| *way == word))?;
        let words = words.collect::<Vec<_>>().join(" ");
        // They become words of the guest's shell.
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " .%-".contains(letter);
        (!words.is_empty() && words.chars().all(is_plain)).then_some(Row { at_s, way, words })
    }

    fn command(&self) -> String {
        format!("set_netem {} {}", self.way, self.words)
    }
}

/// netem's words for a uniform law with the smallest delay, the mean and the loss of these [ns].
fn words_for(delays: &[u32]) -> String {
    let passed = || delays.iter().filter(|delay| **delay != LOST).map(|delay| f64::from(*delay) * 1e-3);
    if passed().next().is_none() {
        return "loss 100%".to_owned();
    }
    let count = passed().count() as f64;
    let least = passed().fold(f64::INFINITY, f64::min);
    let spread = passed().sum::<f64>() / count - least;
    let lost = 1.0 - count / delays.len() as f64;
    let loss = if lost > 0.0 { format!(" loss {:.2}%", lost * 100.0) } else { String::new() };
    format!("delay {:.0}us {:.0}us{loss}", least + spread, spread)
}

/// Before all: bridges, of which each has a card to the server's side (even) and one to the other.
const PREPARED: &str = "for module in crc-ccitt llc stp ipv6 bridge sch_netem; do insmod /modules/$module.ko; done
echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
link=0
while [ $link -lt {links} ]; do
    /bin/ip link add link$link type bridge
    echo 0 >/sys/class/net/link$link/bridge/multicast_snooping
    for card in $((2 * link)) $((2 * link + 1)); do
        /bin/ip link set vec$card up
        brctl addif link$link vec$card
    done
    /bin/ip link set link$link up
    link=$((link + 1))
done
failed=0
# The words of netem on all cards of one way.
set_netem() {
    local way=$1 card
    shift
    card=$way
    while [ $card -lt $((2 * {links})) ]; do
        /programs/tc qdisc replace dev vec$card root netem \"$@\" || failed=1
        card=$((card + 2))
    done
}
# Hundredths of a second. With zeros before it the shell would take it for octal.
now() { cut -d' ' -f1 /proc/uptime | tr -d . | sed 's/^0*\\(.\\)/\\1/'; }
# Waits until this number of hundredths of a second after the begin, unless the run ends before.
wait_until() {
    while [ $(($(now) - begin)) -lt $1 ]; do
        [ -e /out/leave ] && return 1
        sleep 0.1
    done
}
";
/// Between the first settings and the others.
const STARTED: &str = "if [ $failed = 1 ]; then
    echo 'tc refused words of the timetable (plan.log)' >/out/passed
    poweroff -f
fi
echo ready >/out/ready
while ! [ -e /out/go ] && ! [ -e /out/leave ]; do sleep 0.05; done
begin=$(now)
";
/// After all of them. Dropped by netem is what its loss took.
const ENDED: &str = "while ! [ -e /out/leave ]; do sleep 0.2; done
frames=0
for file in /sys/class/net/vec*/statistics/tx_packets; do frames=$((frames + $(cat $file))); done
lost=0
for dropped in $(/programs/tc -s qdisc show | sed -n 's/.*dropped \\([0-9]*\\),.*/\\1/p'); do lost=$((lost + dropped)); done
[ $failed = 0 ] || refused=', and tc refused words of the timetable'
echo \"$frames frames passed, $lost lost by the guest's netem$refused\" >/out/passed
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timetable_that_was_written_is_followed_from_wherever_a_session_begins() {
        let text = "# a comment\n30 to delay 1ms 0.1ms distribution normal\n0 to delay 154us # now\n0 from loss 1% rate 10mbit\n";
        let timetable = Timetable::parse(text).unwrap();
        let first = timetable.script(2, Span::ZERO);
        assert!(first.contains("\nset_netem 0 delay 154us\nset_netem 1 loss 1% rate 10mbit\n"), "{first}");
        assert!(first.contains("\nwait_until 3000 && set_netem 0 delay 1ms 0.1ms distribution normal\n"), "{first}");
        let later = timetable.script(2, Span::from_secs(31));
        assert!(
            !later.contains("154us") && !later.contains("wait_until 3") && later.contains("\nset_netem 0 delay 1ms")
        );
        let between = timetable.script(2, Span::from_secs(20));
        assert!(between.contains("\nwait_until 1000 && "), "{between}");
    }

    #[test]
    fn what_is_no_line_of_a_timetable_is_refused_with_its_number() {
        for bad in
            ["now to delay 1ms", "0 up delay 1ms", "0 to", "-1 to delay 1ms", "0 to delay 1ms; reboot", "0 to $(x)"]
        {
            let failure = Timetable::parse(&format!("0 to delay 1ms\n{bad}")).unwrap_err();
            assert!(failure.message.contains("line 2") && failure.code == Failure::USAGE, "{failure}");
        }
    }

    /// The function of the guest's script, and by it a wait that begins at one reading of /proc/uptime and goes on at
    /// another.
    fn waited(readings: [&str; 2]) -> String {
        let of_script = PREPARED.lines().find(|line| line.starts_with("now()")).unwrap();
        let program =
            of_script.replace(" /proc/uptime", "") + "\necho $(($(echo \"$1\" | now) - $(echo \"$0\" | now)))";
        let done = std::process::Command::new("sh").args(["-c", &program]).args(readings).output().unwrap();
        String::from_utf8(done.stdout).unwrap().trim().to_owned() + &String::from_utf8_lossy(&done.stderr)
    }

    #[test]
    fn a_guest_counts_the_time_from_its_first_second_on() {
        assert_eq!(waited(["0.89 0.80", "1.10 0.95"]), "21");
        assert_eq!(waited(["0.00 0.00", "0.08 0.00"]), "8");
        assert_eq!(waited(["100.07 0.00", "100.10 0.00"]), "3");
    }

    #[test]
    fn where_nothing_passes_everything_is_lost() {
        assert_eq!(words_for(&[LOST; 4]), "loss 100%");
        assert_eq!(words_for(&[100_000, LOST, 300_000, LOST]), "delay 200us 100us loss 50.00%");
        assert_eq!(words_for(&[100_000]), "delay 100us 0us");
    }

    fn words(plan: &str) -> Vec<(f64, usize, String)> {
        let timetable = Timetable::of_plan(&LivePlan::named(plan).unwrap(), Span::from_secs(1000), 1).unwrap().unwrap();
        timetable.rows.into_iter().map(|row| (row.at_s, row.way, row.words)).collect()
    }

    #[test]
    fn the_route_of_a_plan_becomes_longer_one_way_and_congestion_comes_with_pauses() {
        let shift = words("shift-16");
        let delay = |row: &(f64, usize, String)| {
            row.2.split(' ').nth(1).unwrap().trim_end_matches("us").parse::<f64>().unwrap()
        };
        assert_eq!(
            shift.iter().map(|row| (row.0, row.1)).collect::<Vec<_>>(),
            [(0.0, 0), (0.0, 1), (500.0, 0), (500.0, 1)]
        );
        assert!(
            (delay(&shift[2]) - delay(&shift[0]) - 900.0).abs() < 2.0
                && (delay(&shift[3]) - delay(&shift[1])).abs() < 2.0
        );
        let congested = words("congested-16");
        let begins: Vec<f64> = congested.iter().step_by(2).map(|row| row.0).collect();
        assert_eq!(begins, [0.0, 420.0, 430.0, 850.0, 860.0]);
        assert!(delay(&congested[0]) > 154.0 + 60.0 && delay(&congested[2]) < 154.0 + 10.0, "{congested:?}");
        // The far server has one law for all of the run.
        assert_eq!(words("servers-16").iter().map(|row| (row.0, row.1)).collect::<Vec<_>>(), [(0.0, 0), (0.0, 1)]);
        assert!(Timetable::of_plan(&LivePlan::named("quiet-16").unwrap(), Span::from_secs(9), 1).unwrap().is_none());
    }
}

//! Pulses by the raw counter on a stock kernel: a probe on the kernel's function `pps_event`, in a tracing instance of
//! our own whose clock is the counter.
//!
//! A driver calls `pps_event` in the interrupt of the pulse, right after it took its stamp of the system clock. The
//! event carries that stamp, so that it and a pulse of `PPS_FETCH` are known to be the same one. No clock is mapped to
//! another: the time of the event is the counter.
//!
//! The instance and the probe go with [`PulseEvents`]. What a killed process left is removed by the next one, once that
//! process is gone. `tests/vm/pulse-checks` shows all this in kernels of Debian.

use crate::ffi::Pulse;
use ffclock_counter::CounterId;
use ffclock_sys::{EventFormat, Field, TraceEvent, TraceInstance, TraceUnavailable};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Why no pulse comes by the raw counter.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoPulseEvents {
    /// The kernel does not trace for us, or its trace has another clock.
    #[error(transparent)]
    Tracing(#[from] TraceUnavailable),
    /// The kernel takes no probe.
    #[error("the kernel takes no probe on {FUNCTION} ({0}); it needs CONFIG_KPROBE_EVENTS, and root")]
    Probe(io::Error),
    /// The trace is not stamped with the CPU's counter.
    #[error("the trace clock is not {CLOCK} after it was set")]
    Clock,
}

/// The function of the kernel that every driver hands its pulses to.
const FUNCTION: &str = "pps_event";
/// The trace clock that is the CPU's counter.
const CLOCK: &str = "x86-tsc";
/// The group that our probes are in.
const GROUP: &str = "ffclock";
/// The name of a probe is this, the number of its process, and its own.
const PREFIX: &str = "pulses_";
/// What is taken from a call of `pps_event(device, stamp, edge, data)`. The stamp is two words, s and ns; where the
/// kernel is built with CONFIG_NTP_PPS, two others of the raw clock stand before them.
const ARGUMENTS: &str = "device=$arg1:u64 edge=$arg3:s32 seconds=+0($arg2):s64 nanos=+8($arg2):s64 \
     later_seconds=+16($arg2):s64 later_nanos=+24($arg2):s64";
/// Leading edges alone: `PPS_CAPTUREASSERT` of <linux/pps.h>.
const FILTER: &str = "edge & 1";
/// A buffer for each CPU that holds the pulses of some minutes.
const KILOBYTES: u32 = 64;
/// No process has more probes than this.
const MOST_PROBES: u8 = 64;
/// More of a file of tracefs is not looked at.
const LONGEST_TEXT: u64 = 1 << 20;
/// Pulses of all devices that wait for their `PPS_FETCH`; the oldest go first.
const MOST_WAITING: usize = 256;

/// The calls of `pps_event`, by the raw counter.
#[derive(Debug)]
pub(super) struct PulseEvents {
    // Goes before the probe: the kernel keeps a probe that an instance traces.
    instance: TraceInstance,
    format: CallFormat,
    _probe: Probe,
    waiting: WaitingCalls,
}

impl PulseEvents {
    /// Looks at all pulses from now on.
    pub(super) fn begin() -> Result<Self, NoPulseEvents> {
        let instance = TraceInstance::create(CounterId::CPU, KILOBYTES)?;
        let clocks = bounded_text(&instance.path().join("trace_clock")).unwrap_or_default();
        if selected_clock(&clocks) != Some(CLOCK) {
            return Err(NoPulseEvents::Clock);
        }
        let probe = Probe::make(&list_of_probes(&instance)).map_err(NoPulseEvents::Probe)?;
        // As with the fields, it goes before the probe, also where what follows fails.
        let mut instance = instance;
        let event = format!("{GROUP}/{}", probe.name);
        let format = CallFormat::of(&instance.enable(&event, FILTER)?)
            .map_err(|field| TraceUnavailable::NoField { event, field: field.to_owned() })?;
        Ok(PulseEvents { instance, format, _probe: probe, waiting: WaitingCalls::default() })
    }

    /// The counter at `pulse`, which `PPS_FETCH` gave before; `None` where no event is this pulse.
    pub(super) fn counter_at(&mut self, pulse: Pulse) -> io::Result<Option<u64>> {
        let PulseEvents { instance, format, waiting, .. } = self;
        instance.drain(|event| {
            if let Some(call) = format.call(&event) {
                waiting.push(call);
            }
        })?;
        Ok(waiting.take(pulse))
    }
}

fn list_of_probes(instance: &TraceInstance) -> PathBuf {
    // Instances are two levels below the root of tracefs.
    instance.path().ancestors().nth(2).unwrap_or(Path::new("/")).join("kprobe_events")
}

fn bounded_text(path: &Path) -> io::Result<String> {
    let mut text = Vec::new();
    File::open(path)?.take(LONGEST_TEXT).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Of all trace clocks the one in brackets, as in `local [x86-tsc] mono`.
fn selected_clock(clocks: &str) -> Option<&str> {
    clocks.split_ascii_whitespace().find_map(|clock| clock.strip_prefix('[')?.strip_suffix(']'))
}

/// One call of `pps_event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PulseCall {
    counter: u64,
    /// The kernel's address of the device, as a name.
    device: u64,
    /// The two places where the stamp may stand, ns.
    stamps: [i128; 2],
}

#[derive(Debug, Default)]
struct WaitingCalls {
    calls: Vec<PulseCall>,
    device: Option<u64>,
}

impl WaitingCalls {
    fn push(&mut self, call: PulseCall) {
        if self.device.is_some_and(|device| device != call.device) {
            return;
        }
        if self.calls.len() == MOST_WAITING {
            self.calls.remove(0);
        }
        self.calls.push(call);
    }

    /// The counter at the call with the stamp of `pulse`. From the first such call on the device is known. Where two
    /// devices have a pulse of the same stamp before, it is neither's.
    fn take(&mut self, pulse: Pulse) -> Option<u64> {
        let (found, rest): (Vec<_>, Vec<_>) =
            core::mem::take(&mut self.calls).into_iter().partition(|call| call.stamps.contains(&pulse.realtime));
        self.calls = rest;
        let newest = found.iter().max_by_key(|call| call.counter)?;
        if found.iter().any(|call| call.device != newest.device) {
            return None;
        }
        self.device = Some(newest.device);
        // The next pulse may have come since `PPS_FETCH`; one before this is fetched no more.
        self.calls.retain(|call| call.device == newest.device && call.counter > newest.counter);
        Some(newest.counter)
    }
}

/// Where the arguments of a call stand in an event.
#[derive(Debug)]
struct CallFormat {
    id: u16,
    device: Field,
    stamps: [[Field; 2]; 2],
}

impl CallFormat {
    /// `Err` names the field that is missing.
    fn of(format: &EventFormat) -> Result<Self, &'static str> {
        let field = |name: &'static str| format.field(name).cloned().ok_or(name);
        let stamps = [[field("seconds")?, field("nanos")?], [field("later_seconds")?, field("later_nanos")?]];
        Ok(CallFormat { id: format.id(), device: field("device")?, stamps })
    }

    fn call(&self, event: &TraceEvent<'_>) -> Option<PulseCall> {
        if event.id() != Some(self.id) {
            return None;
        }
        let number = |field: &Field| field.number(event.bytes);
        let stamp = |[seconds, nanos]: &[Field; 2]| {
            Some(i128::from(number(seconds)?.cast_signed()) * 1_000_000_000 + i128::from(number(nanos)?.cast_signed()))
        };
        let stamps = [stamp(&self.stamps[0])?, stamp(&self.stamps[1])?];
        Some(PulseCall { counter: event.counter.raw(), device: number(&self.device)?, stamps })
    }
}

/// A probe of ours; the kernel removes it when dropped.
#[derive(Debug)]
struct Probe {
    name: String,
    list: File,
}

impl Probe {
    /// Removes those of processes that have ended, and makes one.
    fn make(list: &Path) -> io::Result<Self> {
        remove_orphans(list);
        let mut result = Err(io::ErrorKind::AlreadyExists.into());
        for number in 0..MOST_PROBES {
            let name = format!("{PREFIX}{}_{number}", std::process::id());
            // Never truncated: that would remove the probes of everyone.
            let mut file = OpenOptions::new().append(true).open(list)?;
            result = file
                .write_all(format!("p:{GROUP}/{name} {FUNCTION} {ARGUMENTS}\n").as_bytes())
                .map(|()| Probe { name, list: file });
            if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
                continue;
            }
            break;
        }
        result
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next one that is made.
        let _ = self.list.write_all(format!("-:{GROUP}/{}\n", self.name).as_bytes());
    }
}

/// Removes probes of processes that have ended. The kernel keeps one that is in use, by a process that cannot be seen
/// from here.
fn remove_orphans(list: &Path) {
    let Ok(text) = bounded_text(list) else { return };
    for (name, process) in text.lines().filter_map(probe_of_ours) {
        if !Path::new("/proc").join(process.to_string()).exists() {
            let file = OpenOptions::new().append(true).open(list);
            let _ = file.and_then(|mut file| file.write_all(format!("-:{GROUP}/{name}\n").as_bytes()));
        }
    }
}

/// The name and the process of a probe that [`Probe::make`] made, from its line in the list of all probes. The name is
/// built again from its numbers, so that nothing else of the line goes back to the kernel.
fn probe_of_ours(line: &str) -> Option<(String, u32)> {
    let event = line.split_ascii_whitespace().next()?.strip_prefix("p:")?;
    let name = event.strip_prefix(GROUP)?.strip_prefix('/')?;
    let (process, number) = name.strip_prefix(PREFIX)?.split_once('_')?;
    let (process, number): (u32, u8) = (process.parse().ok()?, number.parse().ok()?);
    let built = format!("{PREFIX}{process}_{number}");
    (built == name && number < MOST_PROBES).then_some((built, process))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Counter;

    /// As kernel 6.12 gives it.
    const FORMAT: &str = "name: pulses_71_0\nID: 1602\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:u64 device;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:s32 edge;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:s64 seconds;\toffset:28;\tsize:8;\tsigned:1;\n\
        \tfield:s64 nanos;\toffset:36;\tsize:8;\tsigned:1;\n\
        \tfield:s64 later_seconds;\toffset:44;\tsize:8;\tsigned:1;\n\
        \tfield:s64 later_nanos;\toffset:52;\tsize:8;\tsigned:1;\n";

    fn event_bytes(id: u16, stamp: [i64; 2], later: [i64; 2]) -> Vec<u8> {
        let mut bytes = id.to_ne_bytes().to_vec();
        bytes.resize(16, 0);
        bytes.extend(0xffff_9d0c_0000_u64.to_ne_bytes());
        bytes.extend(1_i32.to_ne_bytes());
        bytes.extend(stamp.into_iter().chain(later).flat_map(i64::to_ne_bytes));
        bytes
    }

    fn format() -> CallFormat {
        CallFormat::of(&EventFormat::parse(FORMAT).unwrap()).unwrap()
    }

    fn call(bytes: &[u8]) -> Option<PulseCall> {
        format().call(&TraceEvent { counter: Counter::from_raw(u64::MAX), cpu: 0, bytes })
    }

    fn pulse(realtime: i128) -> Pulse {
        Pulse { sequence: 1, realtime }
    }

    #[test]
    fn an_event_is_the_pulse_whose_stamp_it_carries() {
        let found = call(&event_bytes(1602, [1_700_000_000, 25], [77, 3])).unwrap();
        assert_eq!((found.counter, found.device), (u64::MAX, 0xffff_9d0c_0000));
        assert_eq!(found.stamps, [1_700_000_000_000_000_025, 77_000_000_003]);
        let mut waiting = WaitingCalls::default();
        for wanted in found.stamps {
            waiting.push(found);
            assert_eq!(waiting.take(pulse(wanted)), Some(u64::MAX));
        }
        assert_eq!(waiting.take(pulse(found.stamps[0])), None, "an event is one pulse");
    }

    #[test]
    fn pulses_of_another_device_are_not_taken() {
        let of = |device, counter| PulseCall { counter, device, stamps: [5, 0] };
        let mut waiting = WaitingCalls::default();
        waiting.push(of(1, 10));
        waiting.push(of(2, 11));
        assert_eq!(waiting.take(pulse(5)), None, "either may be it");
        waiting.push(of(1, 20));
        assert_eq!(waiting.take(pulse(5)), Some(20));
        waiting.push(of(1, 30));
        waiting.push(of(2, 31));
        assert_eq!(waiting.take(pulse(5)), Some(30), "now the device is known");
        let next = PulseCall { counter: 41, device: 1, stamps: [6, 0] };
        [of(1, 40), next, PulseCall { counter: 39, ..next }].into_iter().for_each(|call| waiting.push(call));
        assert_eq!(waiting.take(pulse(5)), Some(40));
        assert_eq!(waiting.calls, [next], "the pulse after it may come before it is asked for");
        for counter in 0..10_000 {
            waiting.push(of(1, counter));
        }
        assert_eq!(waiting.calls.len(), MOST_WAITING);
        assert_eq!(waiting.take(pulse(5)), Some(9_999), "the oldest are given up");
    }

    #[test]
    fn hostile_events_are_no_calls() {
        let whole = event_bytes(1602, [i64::MIN; 2], [i64::MAX; 2]);
        assert!(call(&whole).is_some(), "every number is taken");
        for length in 0..whole.len() {
            assert_eq!(call(&whole[..length]), None, "cut off after {length} bytes");
        }
        assert_eq!(call(&event_bytes(1603, [1, 0], [1, 0])), None, "an event of another kind");
        let without = FORMAT.replace(" nanos;", " other;");
        assert_eq!(CallFormat::of(&EventFormat::parse(&without).unwrap()).unwrap_err(), "nanos");
        let narrow = FORMAT.replace("offset:36;\tsize:8", "offset:36;\tsize:3");
        let format = CallFormat::of(&EventFormat::parse(&narrow).unwrap()).unwrap();
        assert_eq!(format.call(&TraceEvent { counter: Counter::from_raw(0), cpu: 0, bytes: &whole }), None);
    }

    #[test]
    fn the_clock_in_use_is_the_one_in_brackets() {
        assert_eq!(selected_clock("local global counter uptime perf mono mono_raw boot tai [x86-tsc]\n"), Some(CLOCK));
        assert_eq!(selected_clock("[local] global x86-tsc"), Some("local"));
        for hostile in ["", "x86-tsc", "[", "]", "[x86-tsc", "x86-tsc]", "[ x86-tsc ]", "\u{fffd}[x86-tsc]"] {
            assert_ne!(selected_clock(hostile), Some(CLOCK), "{hostile}");
        }
    }

    #[test]
    fn only_probes_of_ours_are_recognised_in_the_list() {
        let ours = probe_of_ours("p:ffclock/pulses_4711_0 pps_event device=$arg1:u64 edge=$arg3:s32");
        assert_eq!(ours, Some(("pulses_4711_0".to_owned(), 4711)));
        let huge = format!("p:ffclock/pulses_{}_0 pps_event", "9".repeat(10_000));
        let hostile = [
            "",
            "p",
            "p:",
            "p:ffclock/",
            "p:ffclock/pulses_",
            "p:ffclock/pulses__0",
            "p:ffclock/pulses_4711 pps_event",
            "p:ffclock/pulses_4711_0_1 pps_event",
            "p:ffclock/pulses_4711_64 pps_event",
            "p:ffclock/pulses_+4711_0 pps_event",
            "p:ffclock/pulses_04711_0 pps_event",
            "p:ffclock/pulses_-1_0 pps_event",
            "p:ffclock/pulses_4294967296_0 pps_event",
            "p:ffclock/pulses_4711_0;-: pps_event",
            "p:ffclock2/pulses_4711_0 pps_event",
            "p:others/pulses_4711_0 pps_event",
            "r:ffclock/pulses_4711_0 pps_event",
            "# p:ffclock/pulses_4711_0 pps_event",
            "p:ffclock/pulses_\u{fffd}_0",
            &huge,
        ];
        for line in hostile {
            assert_eq!(probe_of_ours(line), None, "{line:.80}");
        }
    }

    /// In a file that stands for the kernel's list, of which the kernel would carry out each line.
    #[test]
    fn what_an_ended_process_left_is_removed_and_nothing_else() {
        let place = std::env::temp_dir().join(format!("ffclock-probes-{}", std::process::id()));
        let own = std::process::id();
        let before = format!(
            "p:ffclock/pulses_{own}_9 pps_event\np:ffclock/pulses_4294967295_3 pps_event\n\u{1}p:others/x_4294967295_1 f\n"
        );
        std::fs::write(&place, &before).unwrap();
        drop(Probe::make(&place).unwrap());
        let after = std::fs::read_to_string(&place).unwrap();
        std::fs::remove_file(&place).unwrap();
        let said: Vec<&str> = after.strip_prefix(&before).expect("nothing is cut off").lines().collect();
        let made = format!("p:ffclock/pulses_{own}_0 pps_event {ARGUMENTS}");
        assert_eq!(said, ["-:ffclock/pulses_4294967295_3", made.as_str(), &format!("-:ffclock/pulses_{own}_0")]);
    }
}

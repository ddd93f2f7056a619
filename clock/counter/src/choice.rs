//! Which counter to use, and why.

use crate::agreement::{CpuAgreement, compare_cpus};
use crate::clocksource::{self, CPU_COUNTER, is_cpu_counter, offers};
use crate::ffcounter::{ModuleCounter, layout, shared};
use crate::{AgreementError, CounterId, SECOND_BEST, UnknownCounter, usable_counter};
use core::fmt;
use core::str::FromStr;
use std::fs;

/// What the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Choice {
    /// The CPU counter if every check passes, otherwise [`SECOND_BEST`](crate::SECOND_BEST).
    #[default]
    Auto,
    /// This one, whatever the checks say.
    Fixed(CounterId),
}

impl FromStr for Choice {
    type Err = UnknownCounter;
    fn from_str(text: &str) -> Result<Self, UnknownCounter> {
        if text == "auto" { Ok(Choice::Auto) } else { usable_counter(text).map(Choice::Fixed) }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Auto => f.write_str("auto"),
            Choice::Fixed(kind) => kind.fmt(f),
        }
    }
}

/// One property that the CPU counter needs, and whether it has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was asked.
    pub name: &'static str,
    /// Whether the counter may be used as far as this goes.
    pub ok: bool,
    /// What was found, for people; begins with "warning: " where `ok` deserves a second look.
    pub detail: String,
}

/// The counter to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its identity.
    pub kind: CounterId,
    /// Why, as a sentence for the status.
    pub reason: String,
    /// What was found out about the CPU counter; empty when the raw clock was asked for.
    pub checks: Vec<Check>,
}

/// Chooses a counter. The checks of the CPU counter take a few milliseconds, with very many CPUs up to 300.
pub fn choose(choice: Choice) -> Chosen {
    let checks = match choice {
        Choice::Fixed(CounterId::MonotonicRaw) => Vec::new(),
        Choice::Fixed(CounterId::Module(counter)) => vec![check_module(counter)],
        _ => vec![check_invariant(), check_kernel(), check_agreement(compare_cpus(CounterId::CPU))],
    };
    decide(choice, checks)
}

fn decide(choice: Choice, checks: Vec<Check>) -> Chosen {
    let failed: Vec<String> =
        checks.iter().filter(|check| !check.ok).map(|check| format!("{}: {}", check.name, check.detail)).collect();
    let failed = failed.join("; ");
    let (kind, reason) = match (choice, failed.is_empty()) {
        (Choice::Auto, true) => (CounterId::CPU, "the CPU counter passed every check".to_owned()),
        (Choice::Auto, false) => (SECOND_BEST, format!("the CPU counter cannot be trusted: {failed}")),
        (Choice::Fixed(kind), true) => (kind, "set in the configuration".to_owned()),
        (Choice::Fixed(kind), false) => (kind, format!("set in the configuration, although {failed}")),
    };
    Chosen { kind, reason, checks }
}

fn check_module(counter: ModuleCounter) -> Check {
    let (ok, detail) = match shared::sample(counter) {
        Err(error) => (false, error.to_string()),
        Ok(sample) if sample.has(layout::UNTRUSTED) => (false, "the kernel found it unsteady".to_owned()),
        Ok(sample) => (true, format!("{} bits at {} MHz", sample.width, sample.hertz() * 1e-6)),
    };
    Check { name: "read by the kernel module", ok, detail }
}

#[cfg(target_arch = "x86_64")]
fn check_invariant() -> Check {
    let power = crate::cpu::cpuid(0x8000_0000, 0x8000_0007).unwrap_or_default();
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    judge_invariance(power, &flags)
}

#[cfg(target_arch = "aarch64")]
fn check_invariant() -> Check {
    let detail = "the architecture guarantees it".to_owned();
    Check { name: "invariant", ok: true, detail }
}

/// Intel SDM volume 2 and AMD APM volume 3: CPUID 0x80000007, EDX bit 8: the TSC runs at one rate in all states of the
/// CPU. The kernel sets two flags that say the same also for older CPUs that it knows to be good without the bit.
#[cfg(target_arch = "x86_64")]
fn judge_invariance(power: crate::cpu::Leaf, cpuinfo: &str) -> Check {
    let announced = power.edx & (1 << 8) != 0;
    let has = |wanted: &str| cpuinfo.split_ascii_whitespace().any(|flag| flag == wanted);
    let known = has("constant_tsc") && has("nonstop_tsc");
    let detail = match (announced, known) {
        (true, _) => "the CPU announces it",
        (false, true) => "the kernel knows this CPU's counter to be constant and never to stop",
        (false, false) => "the counter may change its rate or stop in idle states",
    };
    Check { name: "invariant", ok: announced || known, detail: detail.to_owned() }
}

fn check_kernel() -> Check {
    judge_clocksources(clocksource::current().as_deref(), clocksource::available().as_deref())
}

/// The kernel watches the counters and withdraws one that it found unsteady from the list of those available. A guest's
/// kernel may prefer the clock of its hypervisor; that says nothing against the counter but deserves a warning.
fn judge_clocksources(current: Option<&str>, available: Option<&[String]>) -> Check {
    let offered = offers(available.unwrap_or_default());
    let (ok, detail) = match current {
        None => (false, "the kernel does not name its clocksource".to_owned()),
        Some(current) if is_cpu_counter(current) => (true, format!("it is the kernel's clocksource ({current})")),
        Some(current) if offered => {
            (true, format!("warning: the kernel could use {CPU_COUNTER} as its clocksource but uses {current}"))
        }
        Some(current) => {
            (false, format!("the kernel does not offer {CPU_COUNTER} as a clocksource; it uses {current}"))
        }
    };
    Check { name: "trusted by the kernel", ok, detail }
}

/// Fewer say little. The kernel has compared the counters too, so the check passes with a warning.
const ENOUGH_HANDOVERS: u64 = 200;

fn check_agreement(found: Result<CpuAgreement, AgreementError>) -> Check {
    let (ok, detail) = match found {
        Err(error) => (false, error.to_string()),
        Ok(seen) if seen.violations > 0 => {
            let CpuAgreement { violations, handovers, worst, .. } = seen;
            (
                false,
                format!("{violations} of {handovers} readings lay after a later one of another CPU, by up to {worst}"),
            )
        }
        Ok(CpuAgreement { cpus: 1, .. }) => (true, "there is one CPU".to_owned()),
        Ok(CpuAgreement { handovers, cpus, .. }) if handovers < ENOUGH_HANDOVERS => (
            true,
            format!("warning: {cpus} CPUs were too busy to compare, only {handovers} readings passed between them"),
        ),
        Ok(CpuAgreement { handovers, cpus, .. }) => {
            (true, format!("{handovers} readings passed between {cpus} CPUs in order"))
        }
    };
    Check { name: "synchronised between CPUs", ok, detail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Ticks;

    fn check(ok: bool) -> Check {
        Check { name: "invariant", ok, detail: "as reported".to_owned() }
    }

    #[test]
    fn choices_parse_back() {
        for text in ["auto", "tsc", "monotonic-raw"] {
            assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
        }
        assert!("TSC".parse::<Choice>().is_err());
    }

    #[test]
    fn one_failed_check_rules_the_cpu_counter_out() {
        let chosen = decide(Choice::Auto, vec![check(true), check(false)]);
        assert_eq!(chosen.kind, CounterId::MonotonicRaw);
        assert!(chosen.reason.contains("invariant: as reported"), "{}", chosen.reason);
        assert_eq!(decide(Choice::Auto, vec![check(true)]).kind, CounterId::CPU);
    }

    #[test]
    fn what_is_asked_for_is_given_with_its_faults_named() {
        let chosen = decide(Choice::Fixed(CounterId::CPU), vec![check(false)]);
        assert_eq!(chosen.kind, CounterId::CPU);
        assert!(chosen.reason.contains("although invariant"), "{}", chosen.reason);
        let raw = choose(Choice::Fixed(CounterId::MonotonicRaw));
        assert_eq!((raw.kind, raw.checks.len()), (CounterId::MonotonicRaw, 0));
    }

    #[test]
    fn a_clocksource_that_the_kernel_withdrew_is_not_trusted() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert!(judge_clocksources(Some(CPU_COUNTER), Some(&names(&["x"]))).ok);
        assert!(!judge_clocksources(Some("hpet"), Some(&names(&["hpet", "acpi_pm"]))).ok);
        assert!(!judge_clocksources(None, None).ok);
        let guest = judge_clocksources(Some("kvm-clock"), Some(&names(&["kvm-clock", CPU_COUNTER, "acpi_pm"])));
        assert!(guest.ok && guest.detail.starts_with("warning: "), "{guest:?}");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn both_flags_or_the_bit_are_needed() {
        let silent = crate::cpu::Leaf::default();
        assert!(judge_invariance(crate::cpu::Leaf { edx: 0x100, ..silent }, "").ok);
        assert!(judge_invariance(silent, "flags : fpu constant_tsc rep_good nonstop_tsc").ok);
        assert!(!judge_invariance(silent, "flags : fpu constant_tsc").ok);
    }

    #[test]
    fn disagreement_is_reported_with_its_size() {
        let seen = CpuAgreement { cpus: 2, handovers: 100, violations: 3, worst: Ticks::from_raw(700) };
        let check = check_agreement(Ok(seen));
        assert!(!check.ok && check.detail.contains("700 ticks"), "{check:?}");
        let few = check_agreement(Ok(CpuAgreement { violations: 0, ..seen }));
        assert!(few.ok && few.detail.starts_with("warning: "), "{few:?}");
        let enough = check_agreement(Ok(CpuAgreement { violations: 0, handovers: 4000, ..seen }));
        assert!(enough.ok && !enough.detail.starts_with("warning: "), "{enough:?}");
    }

    #[test]
    fn this_host_gets_a_counter_and_a_reason() {
        let chosen = choose(Choice::Auto);
        assert_eq!(chosen.checks.len(), 3);
        assert_eq!(chosen.kind == CounterId::CPU, chosen.checks.iter().all(|check| check.ok), "{chosen:?}");
    }
}

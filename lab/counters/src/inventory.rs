//! What counters this machine has, what the kernel makes of them, and which one ffclock would take.

mod firmware;

use crate::handover::{Handover, play_all};
use crate::ways::devices;
use ffclock_counter::ffcounter::{Ffcounter, FfcounterError, ModuleCounter, Sample, layout};
use ffclock_counter::{
    Choice, Chosen, CounterId, Nominal, allowed_cpus, available_clocksources, choose, current_clocksource, nominal,
};
use serde::Serialize;
use std::fs;
use std::path::Path;

/// Everything that `ffclock-lab counters` lists.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inventory {
    /// The counters and clocks.
    pub counters: Vec<Item>,
    /// The clocksource that the kernel counts time by, where it says so.
    pub clocksource: Option<String>,
    /// Those that it would accept.
    pub available: Vec<String>,
    /// The hypervisor of this machine; `None` on hardware of its own, and where none is found.
    pub hypervisor: Option<String>,
    /// What was found out about the CPU's counter.
    pub checks: Vec<CounterProperty>,
    /// The offsets between the CPUs' counters, in ticks.
    pub handovers: Vec<Handover>,
    /// The counter that ffclock would use.
    pub choice: String,
    /// Why it would, and not another one.
    pub reason: String,
    /// What is not there, and how it could be had.
    pub missing: Vec<Missing>,
}

/// A counter or clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Item {
    /// Its name, as elsewhere in ffclock or as the kernel has it.
    pub name: String,
    /// How wide it is, bits, as far as known.
    pub width: Option<u32>,
    /// Its nominal frequency, where known.
    pub hertz: Option<f64>,
    /// Where that figure comes from.
    pub frequency_from: String,
    /// How user space can read it.
    pub access: String,
    /// What the kernel does with it.
    pub kernel: String,
}

/// The answer to one question about the CPU's counter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterProperty {
    /// What was asked.
    pub name: String,
    /// Whether the counter may be used as far as this goes.
    pub ok: bool,
    /// What was found.
    pub detail: String,
}

/// Something that would show more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Missing {
    /// What is not there.
    pub what: String,
    /// How it could be had.
    pub remedy: String,
}

/// What the kernel says of its clocksources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Clocksources {
    current: Option<String>,
    available: Vec<String>,
}

impl Clocksources {
    fn of_this_host() -> Self {
        Clocksources { current: current_clocksource(), available: available_clocksources().unwrap_or_default() }
    }

    fn role(&self, name: &str) -> &'static str {
        if self.current.as_deref() == Some(name) {
            "in use"
        } else if self.available.iter().any(|source| source == name) {
            "offered"
        } else {
            "not offered"
        }
    }
}

/// Looks at this machine; the checks take up to a second.
pub fn take() -> Inventory {
    let sources = Clocksources::of_this_host();
    let chosen = choose(Choice::Auto);
    let checked = choose(Choice::Fixed(CounterId::CPU));
    let mut counters = vec![cpu_counter(nominal(CounterId::CPU).ok(), &sources), raw_clock(&sources)];
    counters.extend(other_clocksources(&sources));
    let module = Ffcounter::open();
    counters.extend(module.iter().flat_map(Ffcounter::counters).map(|(counter, sample)| of_module(counter, &sample)));
    counters.extend(devices("ptp").iter().map(|path| device(path, "ptp", "clock_name")));
    counters.extend(devices("pps").iter().map(|path| device(path, "pps", "name")));
    let Chosen { kind, reason, .. } = chosen;
    Inventory {
        counters,
        hypervisor: ffclock_counter::hypervisor(),
        checks: checked
            .checks
            .into_iter()
            .map(|check| CounterProperty { name: check.name.to_owned(), ok: check.ok, detail: check.detail })
            .collect(),
        handovers: allowed_cpus().and_then(|cpus| play_all(&cpus)).unwrap_or_default(),
        choice: kind.name().to_owned(),
        reason,
        missing: missing(module.err().as_ref()),
        clocksource: sources.current,
        available: sources.available,
    }
}

#[cfg(target_arch = "x86_64")]
const CPU_COUNTER: (&str, &str, &str) = ("tsc", "tsc", "rdtsc, without a system call");
#[cfg(target_arch = "aarch64")]
const CPU_COUNTER: (&str, &str, &str) = ("tsc", "arch_sys_counter", "cntvct_el0, without a system call");

fn cpu_counter(nominal: Option<Nominal>, sources: &Clocksources) -> Item {
    let (name, source, access) = CPU_COUNTER;
    let from = nominal.map_or_else(
        || "it does not run steadily".to_owned(),
        |nominal| format!("{}, +-{}", nominal.source, nominal.error.to_two_figures()),
    );
    Item {
        name: name.to_owned(),
        width: Some(64),
        hertz: nominal.map(|nominal| nominal.period.as_hertz()),
        frequency_from: from,
        access: access.to_owned(),
        kernel: sources.role(source).to_owned(),
    }
}

fn raw_clock(sources: &Clocksources) -> Item {
    Item {
        name: "monotonic-raw".to_owned(),
        width: Some(64),
        hertz: Some(1e9),
        frequency_from: "by definition; the kernel calibrated it at boot".to_owned(),
        access: "clock_gettime, mostly without a system call".to_owned(),
        kernel: format!("made from {}", sources.current.as_deref().unwrap_or("its clocksource")),
    }
}

/// The counters that the kernel or the firmware names besides the CPU's own.
fn other_clocksources(sources: &Clocksources) -> Vec<Item> {
    let mut names: Vec<&str> = sources.available.iter().map(String::as_str).collect();
    names.extend(sources.current.as_deref());
    names.extend(firmware::has_hpet().then_some("hpet"));
    names.extend(firmware::pm_timer_bits().map(|_| "acpi_pm"));
    names.sort_unstable();
    names.dedup();
    names.into_iter().filter(|name| *name != CPU_COUNTER.1).map(|name| clocksource(name, sources)).collect()
}

fn clocksource(name: &str, sources: &Clocksources) -> Item {
    let (width, hertz, from) = known_clocksource(name);
    let access = if name == "kvm-clock" { "the kernel's clocks" } else { "the kernel's clocks, or module ffcounter" };
    Item {
        name: name.to_owned(),
        width,
        hertz,
        frequency_from: from.to_owned(),
        access: access.to_owned(),
        kernel: sources.role(name).to_owned(),
    }
}

/// What is true of a clocksource wherever it occurs: width as the kernel uses it, frequency, where that stands.
fn known_clocksource(name: &str) -> (Option<u32>, Option<f64>, &'static str) {
    match name {
        "hpet" => (Some(32), None, "in its registers, which the kernel alone can read"),
        "acpi_pm" => (Some(24), Some(3_579_545.0), "by definition (ACPI 6.5, 4.8.2.1)"),
        "kvm-clock" | "xen" => (Some(64), Some(1e9), "by definition: nanoseconds of the hypervisor"),
        name if name.starts_with("hyperv_clocksource") => {
            (Some(64), Some(1e7), "by definition: 100 ns of the hypervisor")
        }
        "jiffies" | "refined-jiffies" => (Some(32), None, "the rate of the timer interrupt"),
        _ => (None, None, "not known"),
    }
}

fn device(path: &Path, class: &str, attribute: &str) -> Item {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let named = fs::read_to_string(format!("/sys/class/{class}/{name}/{attribute}")).unwrap_or_default();
    let (width, hertz, access) = if class == "ptp" {
        (Some(64), Some(1e9), "clock_gettime on the device, a system call")
    } else {
        (None, Some(1.0), "PPS_FETCH on the device, a system call")
    };
    let readable = fs::File::open(path).map_or_else(|error| format!(" ({error})"), |_| String::new());
    Item {
        name,
        width,
        hertz,
        frequency_from: format!("by definition; the device is {:?}", named.trim()),
        access: format!("{access}{readable}"),
        kernel: "a device".to_owned(),
    }
}

fn of_module(counter: ModuleCounter, sample: &Sample) -> Item {
    let by = if sample.has(layout::PAGE) {
        "page of /dev/ffcounter, or a system call"
    } else {
        "/dev/ffcounter, a system call"
    };
    let kernel = match (sample.has(layout::ACTIVE), sample.has(layout::UNTRUSTED)) {
        (_, true) => "found unsteady",
        (true, false) => "in use",
        (false, false) => "not in use",
    };
    Item {
        name: format!("module:{counter}"),
        width: Some(sample.width.into()),
        hertz: Some(sample.hertz()),
        frequency_from: "the kernel".to_owned(),
        access: by.to_owned(),
        kernel: kernel.to_owned(),
    }
}

fn missing(module: Option<&FfcounterError>) -> Vec<Missing> {
    let mut missing = Vec::new();
    let mut absent = |what: &str, remedy: &str| {
        missing.push(Missing { what: what.to_owned(), remedy: remedy.to_owned() });
    };
    if let Some(error) = module {
        absent("HPET and ACPI timer from user space, and figures from inside the kernel", &error.to_string());
    }
    if devices("ptp").is_empty() {
        absent(
            "PTP hardware clock (/dev/ptp*)",
            "needs a network card that has one; in a guest of KVM: modprobe ptp_kvm",
        );
    }
    if devices("pps").is_empty() {
        absent("PPS input (/dev/pps*)", "needs a receiver; on a serial line: ldattach PPS DEVICE");
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Rate;

    #[test]
    fn this_machine_has_the_counters_that_the_choice_is_between() {
        let inventory = take();
        let names: Vec<&str> = inventory.counters.iter().map(|item| item.name.as_str()).collect();
        assert!(names.contains(&"tsc") && names.contains(&"monotonic-raw"), "{names:?}");
        assert!(names.contains(&inventory.choice.as_str()) && !inventory.reason.is_empty());
        assert_eq!(inventory.checks.len(), 3);
        for source in &inventory.available {
            assert!(names.contains(&source.as_str()), "{source} is offered by the kernel and not listed");
        }
    }

    #[test]
    fn the_error_of_a_frequency_has_two_figures() {
        let mut counter = nominal(CounterId::CPU).unwrap();
        counter.error = Rate::from_ppm(200.498_7);
        let origin = cpu_counter(Some(counter), &Clocksources::default()).frequency_from;
        assert!(origin.ends_with(", +-210 ppm"), "{origin}");
    }

    #[test]
    fn a_counter_is_in_use_offered_or_neither() {
        let sources = Clocksources { current: Some("hpet".into()), available: vec!["hpet".into(), "acpi_pm".into()] };
        assert_eq!(
            (sources.role("hpet"), sources.role("acpi_pm"), sources.role("tsc")),
            ("in use", "offered", "not offered")
        );
        let listed = other_clocksources(&sources);
        assert_eq!(listed.iter().map(|item| item.name.as_str()).collect::<Vec<_>>(), ["acpi_pm", "hpet"]);
        assert_eq!((listed[0].width, listed[0].hertz), (Some(24), Some(3_579_545.0)));
    }
}

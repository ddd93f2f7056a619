//! What the kernel counts time by, and what it could: its opinion of the counters.

use crate::Trust;

/// The name of the CPU's counter among the clocksources of this kernel.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) const CPU_COUNTER: &str = "tsc";
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
pub(crate) const CPU_COUNTER: &str = "arch_sys_counter";
#[cfg(all(target_os = "freebsd", target_arch = "x86_64"))]
pub(crate) const CPU_COUNTER: &str = "TSC";
#[cfg(all(target_os = "freebsd", target_arch = "aarch64"))]
pub(crate) const CPU_COUNTER: &str = "ARM MPCore Timecounter";

/// FreeBSD's name of the TSC when it leaves out the lowest bits.
const COARSE_CPU_COUNTER: &str = "TSC-low";

/// The clocksource that the kernel runs on now; `None` where it does not say (no sysfs).
#[cfg(target_os = "linux")]
pub fn current() -> Option<String> {
    let name = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource").ok()?;
    Some(name.trim().to_owned())
}

/// The timecounter that the kernel runs on now; `None` where it does not say.
#[cfg(target_os = "freebsd")]
pub fn current() -> Option<String> {
    crate::sysctl::text(c"kern.timecounter.hardware").ok()
}

/// The clocksources that the kernel would run on; `None` where it does not say.
#[cfg(target_os = "linux")]
pub fn available() -> Option<Vec<String>> {
    let names = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/available_clocksource").ok()?;
    Some(names.split_ascii_whitespace().map(str::to_owned).collect())
}

/// The timecounters that the kernel would run on; `None` where it does not say.
#[cfg(target_os = "freebsd")]
pub fn available() -> Option<Vec<String>> {
    Some(usable(&crate::sysctl::text(c"kern.timecounter.choice").ok()?))
}

/// FreeBSD gives each timecounter with its quality, as in `ACPI-fast(900) TSC(-100)`, and chooses none of negative
/// quality by itself.
#[cfg(any(test, target_os = "freebsd"))]
fn usable(choice: &str) -> Vec<String> {
    let rated = choice.split_inclusive(')').filter_map(|one| one.strip_suffix(')')?.rsplit_once('('));
    let good = rated.filter(|(_, quality)| quality.parse::<i64>().is_ok_and(|quality| quality >= 0));
    good.map(|(name, _)| name.trim().to_owned()).collect()
}

pub(crate) fn is_cpu_counter(source: &str) -> bool {
    source == CPU_COUNTER || source == COARSE_CPU_COUNTER
}

/// Whether the CPU's counter is among those available.
pub(crate) fn offers(available: &[String]) -> bool {
    available.iter().any(|source| is_cpu_counter(source))
}

/// Whether the kernel trusts the CPU's counter, by its list of clocksources.
pub(crate) fn trust_by_list() -> Option<Trust> {
    Some(judge_list(&available()?))
}

fn judge_list(available: &[String]) -> Trust {
    if offers(available) {
        return Trust::Trusted;
    }
    Trust::Lost(format!("it no longer offers {CPU_COUNTER} as a clocksource, only {}", available.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_is_not_offered_any_more_is_distrusted() {
        let judged = |names: [&str; 2]| judge_list(&names.map(str::to_owned));
        assert_eq!(judged(["hpet", CPU_COUNTER]), Trust::Trusted);
        let Trust::Lost(why) = judged(["hpet", "acpi_pm"]) else { panic!("trusted") };
        assert!(why.ends_with("only hpet acpi_pm"), "{why}");
    }

    #[test]
    fn timecounters_of_negative_quality_are_not_offered() {
        let all = "ARM MPCore Timecounter(1000) i8254(0) ACPI-fast(900) TSC-low(-100) dummy(-1000000)";
        assert_eq!(usable(all), ["ARM MPCore Timecounter", "i8254", "ACPI-fast"]);
        assert!(offers(&usable("TSC-low(1000) dummy(-1000000)")));
        assert!(usable("nonsense) TSC(much)(").is_empty());
    }

    #[test]
    fn this_kernel_offers_what_it_uses() {
        let current = current().unwrap();
        assert!(available().unwrap().contains(&current), "{current}");
    }
}

//! The cost of the module's interface against the cost of its parts, in the same run: back to back, medians.

use ffclock_counters::latency::{Arrangement, Figures};

/// A counter of the module against what it should cost at least.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CostRatio {
    /// What is compared.
    pub(super) what: String,
    /// What it costs, ns.
    pub(super) ns: f64,
    /// What it is made of, ns.
    pub(super) parts_ns: f64,
}

impl CostRatio {
    /// The comparison as a line of text.
    pub(super) fn line(&self) -> String {
        let CostRatio { what, ns, parts_ns } = self;
        format!("{what}: {:.2} ({ns:.0} ns to {parts_ns:.0} ns)", ns / parts_ns)
    }
}

/// The ioctl of each counter to an empty system call and the counter's own register, and its page to the vDSO.
pub(super) fn ratios(figures: &[Figures]) -> Vec<CostRatio> {
    let median = |counter: &str, access: &str, arrangement: Arrangement| {
        let is_it = |f: &&Figures| f.counter == counter && f.access == access && f.arrangement == arrangement;
        figures.iter().find(is_it).map(|found| found.ns.median)
    };
    let back_to_back = |counter: &str, access: &str| median(counter, access, Arrangement::BackToBack);
    let call = back_to_back("none", "empty system call");
    let vdso = back_to_back("monotonic-raw", "vDSO");
    let mut counters: Vec<&str> =
        figures.iter().map(|f| f.counter.as_str()).filter(|name| name.starts_with("module:")).collect();
    counters.sort_unstable();
    counters.dedup();
    let ioctls = counters.iter().filter_map(|counter| {
        let register = median(counter, "kernel register", Arrangement::Kernel)?;
        let what = format!("{counter} ioctl to an empty system call and the register");
        Some(CostRatio { what, ns: back_to_back(counter, "ioctl")?, parts_ns: call? + register })
    });
    let pages = counters.iter().filter_map(|counter| {
        let what = format!("{counter} page to the vDSO's monotonic-raw");
        Some(CostRatio { what, ns: back_to_back(counter, "page")?, parts_ns: vdso? })
    });
    ioctls.chain(pages).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_statistics::Spread;

    fn figures(counter: &str, access: &str, arrangement: Arrangement, ns: f64) -> Figures {
        let ns = Spread::of(&[ns]).unwrap();
        Figures { phase: 0, counter: counter.into(), access: access.into(), arrangement, count: 1, ticks: ns, ns }
    }

    #[test]
    fn the_interface_is_compared_with_its_parts() {
        let back = Arrangement::BackToBack;
        let measured = [
            figures("none", "empty system call", back, 100.0),
            figures("monotonic-raw", "vDSO", back, 20.0),
            figures("module:hpet", "ioctl", back, 660.0),
            figures("module:hpet", "kernel register", Arrangement::Kernel, 500.0),
            figures("module:tsc", "page", back, 22.0),
        ];
        let lines: Vec<String> = ratios(&measured).iter().map(CostRatio::line).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].contains("module:hpet ioctl") && lines[0].contains("1.10 (660 ns to 600 ns)"), "{lines:?}");
        assert!(lines[1].contains("module:tsc page") && lines[1].contains("1.10"), "{lines:?}");
        assert!(ratios(&measured[..2]).is_empty());
    }
}

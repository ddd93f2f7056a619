//! `ffclock-lab counters` by itself: the inventory.

use crate::GlobalOptions;
use crate::columns::table;
use crate::failure::Failure;
use crate::text::{self, printable};
use ffclock_counters::handover::Handover;
use ffclock_counters::inventory::{Inventory, Item, take};
use std::fmt::Write;

/// Prints the inventory of counters.
pub(super) fn run(global: &GlobalOptions) -> Result<(), Failure> {
    let inventory = take();
    global.answer(&inventory, || page(&inventory))
}

const HEADING: &str = "COUNTER|>BITS|>FREQUENCY|KERNEL|READ BY|FREQUENCY FROM";

fn page(inventory: &Inventory) -> String {
    let mut page = table(HEADING, inventory.counters.iter().map(row));
    let mut line = |text: String| {
        let _ = writeln!(page, "{text}");
    };
    line(String::new());
    let machine = inventory.hypervisor.as_deref().map_or_else(
        || "hardware of its own, as far as the CPU reports".to_owned(),
        |name| format!("a guest of {}; the hypervisor may scale or move the counters", printable(name)),
    );
    line(format!("machine      {machine}"));
    let available = printable(&inventory.available.join(" "));
    let current = inventory.clocksource.as_deref().map_or("unknown".to_owned(), printable);
    line(format!("clocksource  {current} (of {available})"));
    for check in &inventory.checks {
        line(format!("{} {}: {}", if check.ok { "ok         " } else { "FAILED     " }, check.name, check.detail));
    }
    let hertz = inventory.counters.first().and_then(|item| item.hertz);
    for handover in &inventory.handovers {
        line(handover_line(handover, hertz));
    }
    line(format!("choice       {}, because {}", inventory.choice, inventory.reason));
    for missing in &inventory.missing {
        line(format!("missing      {}: {}", missing.what, missing.remedy));
    }
    page
}

fn row(item: &Item) -> Vec<String> {
    vec![
        printable(&item.name),
        item.width.map_or("-".to_owned(), |bits| bits.to_string()),
        item.hertz.map_or("-".to_owned(), text::hertz),
        item.kernel.clone(),
        item.access.clone(),
        printable(&item.frequency_from),
    ]
}

/// Where one CPU's counter stands against the other's.
pub(super) fn handover_line(handover: &Handover, hertz: Option<f64>) -> String {
    let (offset, error) = handover.offset();
    let [first, second] = handover.cpus;
    let size =
        |ticks: f64| hertz.map_or_else(|| format!("{ticks} ticks"), |hertz| format!("{:.1} ns", ticks / hertz * 1e9));
    format!(
        "cpus         {second} is {} ahead of {first}, +- {}; {} readings handed over, {} backwards",
        size(offset),
        size(error),
        handover.count,
        handover.violations
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_a_cpu_is_shown_with_its_error() {
        let handover = Handover { cpus: [0, 3], count: 10, there: 130, back: 70, median: 140, violations: 0 };
        let line = handover_line(&handover, Some(2e9));
        assert!(line.contains("3 is 15.0 ns ahead of 0, +- 50.0 ns; 10 readings handed over, 0 backwards"), "{line}");
        assert!(handover_line(&handover, None).contains("30 ticks"), "{}", handover_line(&handover, None));
    }

    #[test]
    fn the_page_names_every_counter_and_the_choice() {
        let inventory = take();
        let page = page(&inventory);
        for item in &inventory.counters {
            assert!(page.contains(&item.name), "{page}");
        }
        assert!(page.contains(&format!("choice       {}, because", inventory.choice)), "{page}");
    }
}

//! What the firmware's tables say about timers, whether the kernel uses them or not. Only root may read the tables;
//! every user sees that they are there.

use std::fs;
use std::path::Path;

const TABLES: &str = "/sys/firmware/acpi/tables";

/// Whether there is a High Precision Event Timer.
pub(super) fn has_hpet() -> bool {
    Path::new(TABLES).join("HPET").exists()
}

/// The width of the ACPI power management timer; `None` where there is none or the table cannot be read.
pub(super) fn pm_timer_bits() -> Option<u32> {
    pm_timer_bits_of(&fs::read(Path::new(TABLES).join("FACP")).ok()?)
}

/// ACPI 6.5, table 5.9 (FADT): PM_TMR_BLK at byte 76, PM_TMR_LEN at 91, flags at 112 with TMR_VAL_EXT as bit 8;
/// X_PM_TMR_BLK at 208 with its address at 212.
fn pm_timer_bits_of(fadt: &[u8]) -> Option<u32> {
    let word = |at: usize| fadt.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let extended = fadt.get(212..220).is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0));
    let is_there = fadt.get(91) == Some(&4) && (word(76)? != 0 || extended);
    is_there.then(|| word(112)).flatten().map(|flags| if flags & (1 << 8) != 0 { 32 } else { 24 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_of_the_timer_stands_in_the_flags() {
        let mut fadt = vec![0; 244];
        assert_eq!(pm_timer_bits_of(&fadt), None);
        (fadt[76], fadt[91]) = (8, 4);
        assert_eq!(pm_timer_bits_of(&fadt), Some(24));
        fadt[113] = 1;
        assert_eq!(pm_timer_bits_of(&fadt), Some(32));
        assert_eq!(pm_timer_bits_of(&fadt[..100]), None);
        assert_eq!(pm_timer_bits_of(&[]), None);
    }
}

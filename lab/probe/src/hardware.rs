//! Whether the network device could stamp packets itself, with a clock of its own.

use crate::ffi::{self, StampAbility};

/// `SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE` of
/// <linux/net_tstamp.h>.
const RAW_BOTH_WAYS: u32 = 1 | 1 << 2 | 1 << 6;

/// Why there are no stamps of the hardware, for people.
pub(crate) fn verdict(device: &str) -> Option<String> {
    let ability = ffi::stamp_ability(device);
    Some(match ability {
        Err(error) => format!("hardware stamps: {device} does not say whether it can stamp ({error})"),
        Ok(ability) => words(device, ability),
    })
}

fn words(device: &str, ability: StampAbility) -> String {
    match ability.clock {
        Some(clock) if ability.modes & RAW_BOTH_WAYS == RAW_BOTH_WAYS => format!(
            "hardware stamps: {device} can stamp packets by its own clock /dev/ptp{clock}, which this instrument does not use"
        ),
        _ => format!("hardware stamps: {device} has no clock of its own (SOF_TIMESTAMPING_RAW_HARDWARE)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_and_both_ways_make_hardware_stamps() {
        let able = StampAbility { modes: 0x7f, clock: Some(2) };
        assert!(words("eth0", able).contains("/dev/ptp2"));
        assert!(words("eth0", StampAbility { clock: None, ..able }).contains("no clock"));
        assert!(words("eth0", StampAbility { modes: 0x18, ..able }).contains("no clock"));
    }

    #[test]
    fn the_loopback_has_no_clock() {
        assert_eq!(ffi::stamp_ability("lo").expect("the kernel answers").clock, None);
        assert!(ffi::stamp_ability("no-such-device0").is_err());
    }
}

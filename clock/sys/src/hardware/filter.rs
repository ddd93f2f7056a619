//! Which packets a network device stamps: a setting that all programs of the host share.
//!
//! Programs choose by a filter (`HWTSTAMP_FILTER_*` of linux/net_tstamp.h) what is stamped on reception. A card may
//! know packets of PTP alone, of which a program of PTP needs no more. A filter is replaced only by one that stamps at
//! least what the last one did, because another program may have come to rely on it.

use super::{CardId, DeviceSetup, HardwareUnavailable, StampedPackets};
use crate::ffi::hardware::{self as ffi, StampAbilities, StampSettings};

/// `HWTSTAMP_TX_ON`.
const TRANSMIT_ON: i32 = 1;
/// `HWTSTAMP_FILTER_NONE`, `_ALL`, `_PTP_V2_L4_EVENT`, `_PTP_V2_L2_EVENT`, `_PTP_V2_EVENT` and `_NTP_ALL`.
const NONE: i32 = 0;
const ALL: i32 = 1;
const PTP_UDP: i32 = 6;
const PTP_FRAMES: i32 = 9;
const PTP_EVENT: i32 = 12;
const NTP_ALL: i32 = 15;

/// Kinds of packets, as bits.
const OF_NTP: u8 = 1;
const OF_UDP: u8 = 2;
const OF_FRAMES: u8 = 4;
const OF_OTHERS: u8 = 8;
const OF_ALL: u8 = OF_NTP | OF_UDP | OF_FRAMES | OF_OTHERS;

/// The clock of a device that stamps these packets in both directions, after it was made to if that is permitted.
///
/// # Errors
/// It does not; the message names the remedy.
pub fn switch_on_stamps(
    device: &str,
    packets: StampedPackets,
    setup: DeviceSetup,
) -> Result<CardId, HardwareUnavailable> {
    let name = || device.to_owned();
    let abilities = ffi::stamp_abilities(device).map_err(|error| HardwareUnavailable::Silent(name(), error))?;
    let clock = clock_of(&abilities).ok_or_else(|| HardwareUnavailable::NoClock(name()))?;
    let present = ffi::stamp_settings(device);
    if present.as_ref().is_ok_and(|settings| is_on(settings, packets)) {
        return Ok(clock);
    }
    let in_use = present.as_ref().map_or(NONE, |settings| settings.filter);
    let filter = filter_for(packets, abilities.receive_filters, in_use).ok_or_else(|| match packets {
        StampedPackets::Ntp => HardwareUnavailable::PtpAlone(name()),
        StampedPackets::PtpOverUdp | StampedPackets::PtpInFrames => HardwareUnavailable::NoFilter(name()),
    })?;
    if setup == DeviceSetup::Leave {
        // A driver need not say what its settings are; whether stamps come will show.
        return match present {
            Err(_) => Ok(clock),
            Ok(_) if packets == StampedPackets::Ntp => Err(HardwareUnavailable::Off(name())),
            Ok(_) => Err(HardwareUnavailable::OffForPtp(name())),
        };
    }
    ffi::set_stamps(device, StampSettings::of(TRANSMIT_ON, filter))
        .map_err(|error| HardwareUnavailable::NotSwitched(name(), error))?;
    Ok(clock)
}

fn clock_of(abilities: &StampAbilities) -> Option<CardId> {
    /// `SOF_TIMESTAMPING_TX_HARDWARE | _RX_HARDWARE | _RAW_HARDWARE`.
    const BOTH_WAYS: u32 = 1 | 1 << 2 | 1 << 6;
    abilities.clock.filter(|_| abilities.modes & BOTH_WAYS == BOTH_WAYS).map(CardId)
}

fn is_on(settings: &StampSettings, packets: StampedPackets) -> bool {
    settings.transmit == TRANSMIT_ON && stamped_by(settings.filter) & wanted(packets) == wanted(packets)
}

fn wanted(packets: StampedPackets) -> u8 {
    match packets {
        StampedPackets::Ntp => OF_NTP,
        StampedPackets::PtpOverUdp => OF_UDP,
        StampedPackets::PtpInFrames => OF_FRAMES,
    }
}

/// What a filter lets be stamped, of messages that count: all events of PTP of one way, or none.
fn stamped_by(filter: i32) -> u8 {
    match filter {
        ALL => OF_ALL,
        PTP_EVENT => OF_UDP | OF_FRAMES,
        PTP_UDP => OF_UDP,
        PTP_FRAMES => OF_FRAMES,
        NTP_ALL => OF_NTP,
        _ => 0,
    }
}

/// What a filter that takes its place has to stamp, so that no program loses anything.
fn replaced_by(filter: i32) -> u8 {
    match filter {
        NONE => 0,
        // Sync or Delay_Req alone, of one way or of both.
        7 | 8 => OF_UDP,
        10 | 11 => OF_FRAMES,
        13 | 14 => OF_UDP | OF_FRAMES,
        PTP_UDP | PTP_FRAMES | PTP_EVENT | NTP_ALL => stamped_by(filter),
        // Version 1 of PTP, and what is not known.
        _ => OF_ALL,
    }
}

/// The filter for these packets, of those that a device knows, beside what it stamps now. Of PTP its events alone where
/// the device knows them: some cards cannot stamp every packet of a fast link.
fn filter_for(packets: StampedPackets, known: u32, in_use: i32) -> Option<i32> {
    let order: &[i32] = match packets {
        StampedPackets::Ntp => &[ALL, NTP_ALL],
        StampedPackets::PtpOverUdp => &[PTP_EVENT, PTP_UDP, ALL],
        StampedPackets::PtpInFrames => &[PTP_EVENT, PTP_FRAMES, ALL],
    };
    let least = wanted(packets) | replaced_by(in_use);
    order.iter().copied().find(|filter| known & 1 << filter != 0 && stamped_by(*filter) & least == least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_and_both_ways_make_a_card() {
        let able = StampAbilities { modes: 0x7f, clock: Some(2), receive_filters: 3 };
        assert_eq!(clock_of(&able), Some(CardId(2)));
        assert_eq!(clock_of(&StampAbilities { clock: None, ..able }), None);
        assert_eq!(clock_of(&StampAbilities { modes: 0x18, ..able }), None);
    }

    #[test]
    fn a_filter_for_packets_of_ptp_is_not_enough_for_ntp() {
        let is_enough = |settings| is_on(&settings, StampedPackets::Ntp);
        assert!(is_enough(StampSettings::of(1, 1)) && is_enough(StampSettings::of(1, 15)));
        for settings in [StampSettings::of(0, 1), StampSettings::of(1, 0), StampSettings::of(1, 12)] {
            assert!(!is_enough(settings), "{settings:?}");
        }
        assert_eq!(filter_for(StampedPackets::Ntp, 1 << 1 | 1 << 15, NONE), Some(ALL));
        assert_eq!(filter_for(StampedPackets::Ntp, 1 << 15 | 1 << 12, NONE), Some(NTP_ALL));
        assert_eq!(filter_for(StampedPackets::Ntp, 1 | 1 << 12, NONE), None);
    }

    #[test]
    fn ptp_needs_no_more_than_its_events_by_the_way_that_they_travel() {
        let enough = |packets| (1..=15).filter(move |filter| is_on(&StampSettings::of(1, *filter), packets));
        assert_eq!(enough(StampedPackets::PtpOverUdp).collect::<Vec<_>>(), [ALL, PTP_UDP, PTP_EVENT]);
        assert_eq!(enough(StampedPackets::PtpInFrames).collect::<Vec<_>>(), [ALL, PTP_FRAMES, PTP_EVENT]);
        assert!(!is_on(&StampSettings::of(0, PTP_EVENT), StampedPackets::PtpOverUdp));
        let ptp_alone = 1 << PTP_UDP | 1 << PTP_FRAMES;
        assert_eq!(filter_for(StampedPackets::PtpOverUdp, ptp_alone | 1 << PTP_EVENT, NONE), Some(PTP_EVENT));
        assert_eq!(filter_for(StampedPackets::PtpOverUdp, ptp_alone, NONE), Some(PTP_UDP));
        assert_eq!(filter_for(StampedPackets::PtpInFrames, ptp_alone, NONE), Some(PTP_FRAMES));
        assert_eq!(filter_for(StampedPackets::PtpInFrames, 1 << PTP_UDP, NONE), None);
        assert_eq!(
            filter_for(StampedPackets::PtpInFrames, 1 << ALL | 1, NONE),
            Some(ALL),
            "as most cards without the others"
        );
    }

    #[test]
    fn no_filter_is_replaced_by_one_that_stamps_less() {
        let every = u32::MAX;
        // chronyd's filter, and Sync of PTP over UDP, beside frames.
        assert_eq!(filter_for(StampedPackets::PtpInFrames, every, NTP_ALL), Some(ALL));
        assert_eq!(filter_for(StampedPackets::PtpInFrames, every, 7), Some(PTP_EVENT));
        assert_eq!(filter_for(StampedPackets::PtpInFrames, 1 << PTP_FRAMES, 7), None);
        assert_eq!(filter_for(StampedPackets::PtpOverUdp, every & !(1 << ALL), 3), None, "version 1");
        assert_eq!(filter_for(StampedPackets::Ntp, 1 << NTP_ALL, PTP_EVENT), None);
        assert_eq!(filter_for(StampedPackets::Ntp, every, PTP_EVENT), Some(ALL));
        // One that is on and merely lacks stamps of transmission stays.
        assert_eq!(filter_for(StampedPackets::PtpOverUdp, every, ALL), Some(ALL));
    }

    #[test]
    fn the_loopback_is_no_card() {
        for (packets, setup) in
            [(StampedPackets::Ntp, DeviceSetup::Leave), (StampedPackets::PtpInFrames, DeviceSetup::SwitchOn)]
        {
            let error = switch_on_stamps("lo", packets, setup).unwrap_err();
            assert!(matches!(error, HardwareUnavailable::NoClock(_)), "{error}");
        }
        let error = switch_on_stamps("no-such-device", StampedPackets::Ntp, DeviceSetup::Leave).unwrap_err();
        assert!(matches!(error, HardwareUnavailable::Silent(..)), "{error}");
    }
}

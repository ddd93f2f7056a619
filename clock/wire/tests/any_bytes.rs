//! Properties of the codec for any bytes, any moment and any era.

use ffclock_units::{Bound, Moment, Server, Span};
use ffclock_wire::{DecodeError, HEADER_BYTES, NtpTimestamp, PACKET_BYTES_MAX, Packet};
use proptest::prelude::*;

/// Within +-2^61 s of 1970, some 5e8 eras either way: far from where spans saturate.
fn any_moment() -> impl Strategy<Value = Moment<Server>> {
    (-(1i128 << 125)..(1i128 << 125)).prop_map(|units| Moment::from_origin(Span::from_units(units)))
}

/// Half an era, in seconds.
const HALF_ERA: i64 = 1 << 31;

proptest! {
    #[test]
    fn any_bytes_give_a_packet_or_a_reason(bytes in proptest::collection::vec(any::<u8>(), 0..PACKET_BYTES_MAX + 64)) {
        match Packet::decode(&bytes) {
            Ok(packet) => prop_assert_eq!(&packet.encode()[..], &bytes[..HEADER_BYTES]),
            Err(DecodeError::Truncated) => prop_assert!(bytes.len() < HEADER_BYTES),
            Err(DecodeError::TooLong) => prop_assert!(bytes.len() > PACKET_BYTES_MAX),
            Err(DecodeError::Version(version)) => prop_assert_eq!(version, bytes[0] >> 3 & 7),
        }
    }

    #[test]
    fn every_claim_survives_encoding_without_shrinking(
        delay in any::<i128>(), dispersion in any::<i128>(), template in any::<[u8; HEADER_BYTES]>(),
    ) {
        let mut template = template;
        template[0] = template[0] & 0b11_000_111 | 4 << 3;
        let mut packet = Packet::decode(&template).unwrap();
        packet.root_delay = Span::from_units(delay >> 46);
        packet.root_dispersion = Bound::of(Span::from_units(dispersion >> 48));
        let back = Packet::decode(&packet.encode()).unwrap();
        let largest = Span::from_secs(65_536) - Span::from_units(1 << 48);
        prop_assert!(back.root_delay >= packet.root_delay.min(largest));
        prop_assert!(back.root_dispersion.as_span() >= packet.root_dispersion.as_span().min(largest));
        prop_assert!(back.root_distance().as_span() >= back.root_dispersion.as_span());
    }

    #[test]
    fn a_moment_of_any_era_survives_the_wire(moment in any_moment(), away in -HALF_ERA + 1..HALF_ERA - 1) {
        let back = NtpTimestamp::from_server(moment).to_server(moment + Span::from_secs(away));
        prop_assert!((back - moment).abs() <= Span::from_units(1 << 31), "{:?}", back - moment);
    }

    #[test]
    fn a_timestamp_unfolds_to_the_era_nearest_to_the_pivot(bits in 1u64.., pivot in any_moment()) {
        let stamp = NtpTimestamp::from_raw(bits);
        let unfolded = stamp.to_server(pivot);
        prop_assert!((unfolded - pivot).abs() <= Span::from_secs(HALF_ERA));
        prop_assert_eq!(NtpTimestamp::from_server(unfolded), stamp);
    }

    #[test]
    fn no_moment_is_too_far(bits in any::<u64>(), pivot in any::<i128>()) {
        let pivot = Moment::from_origin(Span::from_units(pivot));
        let unfolded = NtpTimestamp::from_raw(bits).to_server(pivot);
        prop_assert!((unfolded - pivot).abs() <= Span::from_secs(HALF_ERA));
        prop_assert!(!NtpTimestamp::from_server(pivot).is_missing());
    }
}

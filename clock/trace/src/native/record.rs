//! One record as bytes.

use crate::{Fault, ServerIndex, TraceRow, Truth};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Exchange, Leap, Moment, ServerIdentity, ServerQuality, Span, Stamp, StampLocation,
    Tai, Ticks,
};

/// The size of a record without reference times [bytes].
pub(super) const PLAIN: usize = 112;
/// The size of a record with room for reference times [bytes].
pub(super) const WITH_TRUTH: usize = 144;

const KIND_EXCHANGE: u8 = 1;
const KIND_LOST: u8 = 2;
const FLAG_RECEIVED: u8 = 1;
const FLAG_SENT: u8 = 2;

/// The check over `bytes`, a multiple of 8 long: a hash of 64-bit words in which every step is invertible, so that a
/// change within one word is always found.
pub(super) fn check(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(0x6666_636c_6f63_6b31, |hash, word| {
        (hash.rotate_left(29) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// Reads fields in their order; past the end they are 0, which the size of a record rules out.
struct RecordFields<'a>(&'a [u8]);

impl RecordFields<'_> {
    #[inline]
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((field, rest)) => {
                self.0 = rest;
                *field
            }
            None => [0; N],
        }
    }

    #[inline]
    fn byte(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }

    #[inline]
    fn small(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    #[inline]
    fn word(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    #[inline]
    fn span(&mut self) -> Span {
        Span::from_units(i128::from_le_bytes(self.take()))
    }

    #[inline]
    fn moment(&mut self) -> Moment<Tai> {
        Moment::from_origin(self.span())
    }
}

/// Decodes one record, `PLAIN` or `WITH_TRUTH` bytes long.
#[inline]
pub(super) fn decode(record: &[u8]) -> Result<TraceRow, Fault> {
    let (body, stated) = record.split_last_chunk::<8>().ok_or(Fault::Damaged)?;
    if check(body) != u64::from_le_bytes(*stated) {
        return Err(Fault::Damaged);
    }
    let mut fields = RecordFields(body);
    let [kind, flags, places, leap] = fields.take();
    let server = ServerIndex(fields.small());
    let sequence = fields.word();
    let epoch = CounterEpoch::from_raw(fields.word());
    let exchange = match kind {
        KIND_EXCHANGE => Some(decode_exchange(&mut fields, places, leap)?),
        KIND_LOST => None,
        _ => return Err(unknown("kind", kind)),
    };
    let truth = match flags & FLAG_RECEIVED {
        0 => None,
        _ => Some(decode_truth(body, flags)),
    };
    Ok(TraceRow { sequence, epoch, exchange, truth, server })
}

#[inline]
fn decode_exchange(fields: &mut RecordFields<'_>, places: u8, leap: u8) -> Result<Exchange, Fault> {
    let (sent, received) = (Counter::from_raw(fields.word()), Counter::from_raw(fields.word()));
    let (sent_width, received_width) = (width(fields.small()), width(fields.small()));
    let (server_in, server_out) = (fields.moment(), fields.moment());
    let root_distance = Bound::of(fields.span());
    let stratum = fields.byte();
    let _: [u8; 3] = fields.take();
    let identity = ServerIdentity { stratum, reference_id: fields.small() };
    Ok(Exchange {
        sent: Stamp { counter: sent, width: sent_width, location: location(places & 0xf)? },
        server_in,
        server_out,
        received: Stamp { counter: received, width: received_width, location: location(places >> 4)? },
        server: ServerQuality { identity, leap: leap_of(leap)?, root_distance },
    })
}

fn decode_truth(body: &[u8], flags: u8) -> Truth {
    let mut fields = RecordFields(body.get(PLAIN - 8..).unwrap_or(&[]));
    let sent = fields.moment();
    Truth { sent: (flags & FLAG_SENT != 0).then_some(sent), received: fields.moment() }
}

const fn width(ticks: u32) -> Ticks {
    Ticks::from_raw(ticks as i64)
}

fn unknown(field: &'static str, value: u8) -> Fault {
    Fault::Unknown { field, value: value as u32 }
}

#[inline]
fn location(code: u8) -> Result<StampLocation, Fault> {
    match code {
        0 => Ok(StampLocation::Unknown),
        1 => Ok(StampLocation::User),
        2 => Ok(StampLocation::Kernel),
        3 => Ok(StampLocation::Hardware),
        _ => Err(unknown("stamp location", code)),
    }
}

const fn location_code(location: StampLocation) -> u8 {
    match location {
        StampLocation::Unknown => 0,
        StampLocation::User => 1,
        StampLocation::Kernel => 2,
        StampLocation::Hardware => 3,
    }
}

#[inline]
fn leap_of(code: u8) -> Result<Leap, Fault> {
    crate::fields::leap_of(code as u64).ok_or_else(|| unknown("leap indicator", code))
}

const fn leap_code(leap: Leap) -> u8 {
    match leap {
        Leap::None => 0,
        Leap::Insert => 1,
        Leap::Delete => 2,
    }
}

/// Writes fields in their order.
struct Body {
    bytes: [u8; WITH_TRUTH],
    length: usize,
}

impl Body {
    fn put<const N: usize>(&mut self, field: [u8; N]) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + N) {
            place.copy_from_slice(&field);
        }
        self.length += N;
    }

    fn put_span(&mut self, span: Span) {
        self.put(span.units().to_le_bytes());
    }
}

/// Encodes one row; `size` is `PLAIN` or `WITH_TRUTH`. A width beyond 32 bits is written as the largest that fits.
pub(super) fn encode(row: &TraceRow, size: usize) -> [u8; WITH_TRUTH] {
    let mut body = Body { bytes: [0; WITH_TRUTH], length: 0 };
    let truth = row.truth.filter(|_| size == WITH_TRUTH);
    let flags = truth.map_or(0, |truth| FLAG_RECEIVED | if truth.sent.is_some() { FLAG_SENT } else { 0 });
    let kind = if row.exchange.is_some() { KIND_EXCHANGE } else { KIND_LOST };
    let (places, leap) = row.exchange.map_or((0, 0), |exchange| {
        let places = location_code(exchange.sent.location) | location_code(exchange.received.location) << 4;
        (places, leap_code(exchange.server.leap))
    });
    body.put([kind, flags, places, leap]);
    body.put(row.server.0.to_le_bytes());
    body.put(row.sequence.to_le_bytes());
    body.put(row.epoch.raw().to_le_bytes());
    if let Some(exchange) = &row.exchange {
        put_exchange(&mut body, exchange);
    }
    body.length = PLAIN - 8;
    if let Some(truth) = truth {
        body.put_span(truth.sent.unwrap_or(truth.received).since_origin());
        body.put_span(truth.received.since_origin());
    }
    let check = check(body.bytes.get(..size - 8).unwrap_or(&[]));
    body.length = size - 8;
    body.put(check.to_le_bytes());
    body.bytes
}

fn put_exchange(body: &mut Body, exchange: &Exchange) {
    body.put(exchange.sent.counter.raw().to_le_bytes());
    body.put(exchange.received.counter.raw().to_le_bytes());
    for stamp in [&exchange.sent, &exchange.received] {
        let ticks = u32::try_from(stamp.width.raw().max(0)).unwrap_or(u32::MAX);
        body.put(ticks.to_le_bytes());
    }
    body.put_span(exchange.server_in.since_origin());
    body.put_span(exchange.server_out.since_origin());
    body.put_span(exchange.server.root_distance.as_span());
    body.put([exchange.server.identity.stratum, 0, 0, 0]);
    body.put(exchange.server.identity.reference_id.to_le_bytes());
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn any_row() -> impl Strategy<Value = TraceRow> {
        let stamps = (any::<[u64; 2]>(), any::<[u32; 2]>(), any::<[i64; 4]>(), any::<[u64; 4]>());
        let rest = (any::<[u8; 6]>(), any::<u32>(), any::<u64>(), any::<u32>());
        (stamps, rest).prop_map(|((counters, widths, seconds, fractions), (codes, id, sequence, server))| {
            let moment = |index: usize| {
                let units = ((seconds[index] as i128) << 64) | fractions[index] as i128;
                Moment::<Tai>::from_origin(Span::from_units(units))
            };
            let stamp = |index: usize| Stamp {
                counter: Counter::from_raw(counters[index]),
                width: width(widths[index]),
                location: location(codes[index] % 3).unwrap(),
            };
            let quality = ServerQuality {
                identity: ServerIdentity { stratum: codes[2], reference_id: id },
                leap: leap_of(codes[3] % 3).unwrap(),
                root_distance: Bound::of(moment(2).since_origin()),
            };
            let exchange = Exchange {
                sent: stamp(0),
                server_in: moment(0),
                server_out: moment(1),
                received: stamp(1),
                server: quality,
            };
            let truth = Truth { sent: (codes[4] & 1 == 0).then_some(moment(3)), received: moment(2) };
            TraceRow {
                sequence,
                epoch: CounterEpoch::from_raw(fractions[0]),
                exchange: (codes[5] & 1 == 0).then_some(exchange),
                truth: (codes[5] & 2 == 0).then_some(truth),
                server: ServerIndex(server),
            }
        })
    }

    proptest! {
        #[test]
        fn a_record_keeps_every_bit(row in any_row()) {
            prop_assert_eq!(decode(&encode(&row, WITH_TRUTH)), Ok(row));
            let plain = TraceRow { truth: None, ..row };
            prop_assert_eq!(decode(&encode(&row, PLAIN)[..PLAIN]), Ok(plain));
        }

        #[test]
        fn a_flipped_bit_is_always_found(row in any_row(), at in 0usize..WITH_TRUTH, bit in 0u32..8) {
            let mut record = encode(&row, WITH_TRUTH);
            record[at] ^= 1 << bit;
            prop_assert_eq!(decode(&record), Err(Fault::Damaged));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_hole_of_zeros_is_no_record() {
        assert_eq!(decode(&[0; PLAIN]), Err(Fault::Damaged));
    }

    #[test]
    fn an_unknown_value_of_a_later_version_is_named() {
        let row = TraceRow {
            sequence: 0,
            epoch: CounterEpoch::from_raw(0),
            exchange: None,
            truth: None,
            server: ServerIndex(0),
        };
        let mut record = encode(&row, PLAIN);
        record[0] = 9;
        let check = check(&record[..PLAIN - 8]);
        record[PLAIN - 8..PLAIN].copy_from_slice(&check.to_le_bytes());
        assert_eq!(decode(&record[..PLAIN]), Err(Fault::Unknown { field: "kind", value: 9 }));
    }
}

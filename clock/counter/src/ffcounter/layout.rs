//! What `kernel/include/uapi/ffcounter.h` declares, once more; `tests/uapi.rs` compares the two.

use ffclock_units::Counter;

/// The version of the interface that this reader knows.
pub const VERSION: u32 = 1;
/// The counters of the interface, those that a machine has not included.
pub const COUNT: u16 = 6;
/// Ports that can be stamped at a time.
pub const PORTS_MAX: usize = 16;
/// Bytes of the payload that a stamp repeats.
pub const HEAD_BYTES: usize = 48;

/// One reading of a counter. Values of one epoch never go backwards and never wrap.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Cumulative ticks.
    pub value: u64,
    /// The nominal frequency (mHz).
    pub frequency_millihertz: u64,
    /// Changes whenever later values do not continue the earlier ones.
    pub epoch: u32,
    /// The code of the counter, see [`ModuleCounter`](super::ModuleCounter).
    pub id: u16,
    /// Bits of the hardware counter.
    pub width: u16,
    /// [`ACTIVE`], [`PAGE`], [`UNTRUSTED`].
    pub flags: u32,
    /// Of the active counter: which one it is; of any other, the counter itself.
    pub underlying: u32,
}

/// The kernel keeps time with the counter now.
pub const ACTIVE: u32 = 1 << 0;
/// The counter can be read without a system call.
pub const PAGE: u32 = 1 << 1;
/// The kernel found the counter unsteady.
pub const UNTRUSTED: u32 = 1 << 2;

impl Sample {
    /// The value as a reading of the raw counter.
    pub fn counter(&self) -> Counter {
        Counter::from_raw(self.value)
    }

    /// The nominal frequency [Hz].
    pub fn hertz(&self) -> f64 {
        self.frequency_millihertz as f64 * 1e-3
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// A counter and two clocks of the kernel from one snapshot: the clocks showed this at some moment between the two
/// values.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairedSample {
    /// The counter before the clocks.
    pub sample: Sample,
    /// The cumulative value after the clocks; for the active counter the same reading as before.
    pub value_after: u64,
    /// `CLOCK_REALTIME` [ns].
    pub realtime_ns: i64,
    /// `CLOCK_MONOTONIC_RAW` [ns].
    pub monotonic_raw_ns: i64,
}

/// What one reading cost within the kernel: four readings of the TSC. Between the first two lies nothing, between the
/// next two the register of the counter alone, between the last two the whole interface.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelLatency {
    /// The TSC in cycles.
    pub tsc: [u64; 4],
    /// The code of the counter.
    pub id: u32,
    /// Its epoch.
    pub epoch: u32,
}

/// Which packets to stamp with which counter.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamping {
    /// The code of the counter.
    pub id: u32,
    /// How many of the ports count; none ends it.
    pub count: u32,
    /// UDP ports, of either side.
    pub ports: [u16; PORTS_MAX],
}

/// The packet was about to be given to the driver.
pub const SENT: u8 = 1;
/// The packet had just come from the driver.
pub const RECEIVED: u8 = 2;

/// A packet that passed the boundary to the driver.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketStamp {
    /// The cumulative value when it passed.
    pub value: u64,
    /// The epoch of the value.
    pub epoch: u32,
    /// Records replaced so far by newer ones because they were not read in time.
    pub lost: u32,
    /// The network interface.
    pub ifindex: u32,
    /// The code of the counter.
    pub id: u16,
    /// [`SENT`] or [`RECEIVED`].
    pub direction: u8,
    /// 4 or 6.
    pub family: u8,
    /// Bytes of the UDP payload.
    pub length: u16,
    /// Bytes of `head` that count.
    pub head_length: u16,
    /// In network byte order.
    pub source_port: u16,
    /// In network byte order.
    pub destination_port: u16,
    /// Of IPv4 the first four bytes.
    pub source: [u8; 16],
    /// Of IPv4 the first four bytes.
    pub destination: [u8; 16],
    /// The payload begins so.
    pub head: [u8; HEAD_BYTES],
}

/// What stands at the beginning of a page; `sequence` is odd while the module writes.
pub(super) mod page {
    pub(crate) const VERSION: usize = 0;
    pub(crate) const SEQUENCE: usize = 4;
    pub(crate) const STATE: usize = 8;
    pub(crate) const EPOCH: usize = 12;
    /// The TSC is the cumulative value.
    pub(crate) const STATE_TSC: u32 = 1;
}

const MAGIC: u32 = 0xFC;

/// `_IOC` of the kernel: direction (1 to the kernel, 2 from it), size, number.
const fn request(direction: u32, size: usize, number: u32) -> u32 {
    (direction << 30) | ((size as u32) << 16) | (MAGIC << 8) | number
}

pub(super) const GET_VERSION: u32 = request(2, 4, 0x01);
pub(super) const SET_STAMPING: u32 = request(1, size_of::<Stamping>(), 0x02);

pub(super) const fn read_request(id: u16) -> u32 {
    request(2, size_of::<Sample>(), 0x10 + id as u32)
}

pub(super) const fn pair_request(id: u16) -> u32 {
    request(2, size_of::<PairedSample>(), 0x20 + id as u32)
}

pub(super) const fn latency_request(id: u16) -> u32 {
    request(2, size_of::<KernelLatency>(), 0x30 + id as u32)
}

/// Every figure of the layout by the expression that gives it in C.
pub fn figures() -> Vec<(&'static str, u64)> {
    use core::mem::offset_of;
    macro_rules! offsets {
        ($list:ident, $c:literal, $rust:ty, $($field:ident)*) => {
            $list.push((concat!("sizeof(struct ", $c, ")"), size_of::<$rust>() as u64));
            $($list.push((concat!("offsetof(struct ", $c, ", ", stringify!($field), ")"), offset_of!($rust, $field) as u64));)*
        };
    }
    let mut list: Vec<(&'static str, u64)> = vec![
        ("FFCOUNTER_VERSION", VERSION.into()),
        ("FFCOUNTER_COUNT", COUNT.into()),
        ("FFCOUNTER_MAX_PORTS", PORTS_MAX as u64),
        ("FFCOUNTER_HEAD", HEAD_BYTES as u64),
        ("FFCOUNTER_F_ACTIVE", ACTIVE.into()),
        ("FFCOUNTER_F_PAGE", PAGE.into()),
        ("FFCOUNTER_F_UNTRUSTED", UNTRUSTED.into()),
        ("FFCOUNTER_SENT", SENT.into()),
        ("FFCOUNTER_RECEIVED", RECEIVED.into()),
        ("FFCOUNTER_GET_VERSION", GET_VERSION.into()),
        ("FFCOUNTER_SET_STAMPING", SET_STAMPING.into()),
        ("FFCOUNTER_READ(FFCOUNTER_KVM_CLOCK)", read_request(5).into()),
        ("FFCOUNTER_PAIR(FFCOUNTER_HPET)", pair_request(2).into()),
        ("FFCOUNTER_LATENCY(FFCOUNTER_ACPI_PM_SAFE)", latency_request(4).into()),
        ("FFCOUNTER_PAGE_TSC", page::STATE_TSC.into()),
        ("offsetof(struct ffcounter_page, version)", page::VERSION as u64),
        ("offsetof(struct ffcounter_page, sequence)", page::SEQUENCE as u64),
        ("offsetof(struct ffcounter_page, state)", page::STATE as u64),
        ("offsetof(struct ffcounter_page, epoch)", page::EPOCH as u64),
    ];
    offsets!(list, "ffcounter_sample", Sample, value frequency_millihertz epoch id width flags underlying);
    offsets!(list, "ffcounter_pair", PairedSample, sample value_after realtime_ns monotonic_raw_ns);
    offsets!(list, "ffcounter_latency", KernelLatency, tsc id epoch);
    offsets!(list, "ffcounter_stamping", Stamping, id count ports);
    offsets!(list, "ffcounter_stamp", PacketStamp, value epoch lost ifindex id direction family length head_length);
    offsets!(list, "ffcounter_stamp", PacketStamp, source_port destination_port source destination head);
    list
}

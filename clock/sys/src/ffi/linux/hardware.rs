//! What a network device says of its hardware stamps, and its PTP hardware clock. The layouts are those of
//! linux/ethtool.h, linux/net_tstamp.h and linux/ptp_clock.h; newer fields stand where older kernels want zeros.

use crate::ffi::checked;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct ethtool_ts_info`.
#[repr(C)]
#[derive(Default)]
struct TimestampingInfo {
    command: u32,
    modes: u32,
    clock: i32,
    transmit_types: u32,
    reserved: [u32; 3],
    receive_filters: u32,
    reserved_too: [u32; 3],
}

/// `ETHTOOL_GET_TS_INFO`.
const GET_TS_INFO: u32 = 0x41;
/// `SIOCSHWTSTAMP` and `SIOCGHWTSTAMP` of linux/sockios.h.
const SET_STAMPS: u32 = 0x89b0;
const GET_STAMPS: u32 = 0x89b1;

/// What a device can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StampAbilities {
    /// Flags `SOF_TIMESTAMPING_*`.
    pub(crate) modes: u32,
    /// The number of its clock, if it has one.
    pub(crate) clock: Option<u32>,
    /// A bit for each `HWTSTAMP_FILTER_*` of which it has a use.
    pub(crate) receive_filters: u32,
}

/// `struct hwtstamp_config`: what a device does.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StampSettings {
    flags: i32,
    /// `HWTSTAMP_TX_*`.
    pub(crate) transmit: i32,
    /// `HWTSTAMP_FILTER_*`.
    pub(crate) filter: i32,
}

impl StampSettings {
    /// Stamps packets sent, and those received that this filter chooses.
    pub(crate) fn of(transmit: i32, filter: i32) -> Self {
        StampSettings { flags: 0, transmit, filter }
    }
}

/// Asks a device what it can stamp.
pub(crate) fn stamp_abilities(device: &str) -> io::Result<StampAbilities> {
    let mut info = TimestampingInfo { command: GET_TS_INFO, ..TimestampingInfo::default() };
    // SAFETY: SIOCETHTOOL with this command reads and writes one ethtool_ts_info.
    unsafe { on_device(device, libc::SIOCETHTOOL as u32, &mut info)? };
    Ok(StampAbilities {
        modes: info.modes,
        clock: u32::try_from(info.clock).ok(),
        receive_filters: info.receive_filters,
    })
}

/// Asks a device what it stamps now.
pub(crate) fn stamp_settings(device: &str) -> io::Result<StampSettings> {
    let mut settings = StampSettings::default();
    // SAFETY: SIOCGHWTSTAMP writes one hwtstamp_config.
    unsafe { on_device(device, GET_STAMPS, &mut settings)? };
    Ok(settings)
}

/// Makes a device stamp; what it does then, which may be more, is returned. Needs CAP_NET_ADMIN.
pub(crate) fn set_stamps(device: &str, mut settings: StampSettings) -> io::Result<StampSettings> {
    // SAFETY: SIOCSHWTSTAMP reads and writes one hwtstamp_config.
    unsafe { on_device(device, SET_STAMPS, &mut settings)? };
    Ok(settings)
}

/// The address of a device of Ethernet or of its kind; `None` of other kinds.
pub(crate) fn device_address(device: &str) -> io::Result<Option<[u8; 6]>> {
    let socket = any_socket()?;
    let mut request = request_for(device)?;
    // SAFETY: SIOCGIFHWADDR reads the name and writes an address into the request, which outlives the call.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as _, &raw mut request) })?;
    // SAFETY: an address is what was written, and it is made of integers.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    let octets = address.sa_data.first_chunk().map(|octets| octets.map(|octet| octet as u8));
    Ok(octets.filter(|_| address.sa_family == libc::ARPHRD_ETHER))
}

/// A socket of any kind, to ask about devices.
fn any_socket() -> io::Result<std::net::UdpSocket> {
    std::net::UdpSocket::bind("0.0.0.0:0").or_else(|_| std::net::UdpSocket::bind("[::]:0"))
}

fn request_for(device: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an ifreq is made of integers and a pointer, for which zero is a value.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    if device.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *place = byte as libc::c_char;
    }
    Ok(request)
}

/// A request about a device.
///
/// # Safety
/// The command reads and writes one `T` at most behind the pointer of the request.
unsafe fn on_device<T>(device: &str, command: u32, data: &mut T) -> io::Result<()> {
    let socket = any_socket()?;
    let mut request = request_for(device)?;
    request.ifr_ifru.ifru_data = core::ptr::from_mut(data).cast();
    // SAFETY: the command reads the name and a `T` by the caller's word; both outlive the call.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), command as _, &raw mut request) }).map(drop)
}

/// The network devices of this thread's namespace by number and name.
pub(crate) fn network_devices() -> Vec<(u32, String)> {
    // SAFETY: the call takes nothing; what it returns is given back below.
    let list = unsafe { libc::if_nameindex() };
    let mut found = Vec::new();
    let mut next = list;
    // SAFETY: the list is what if_nameindex made, and an entry of zeros is its end.
    while let Some(entry) = unsafe { next.as_ref() }.filter(|entry| entry.if_index != 0 && !entry.if_name.is_null()) {
        // SAFETY: the name is a C string of that list.
        let name = unsafe { core::ffi::CStr::from_ptr(entry.if_name) };
        found.push((entry.if_index, name.to_string_lossy().into_owned()));
        // SAFETY: the entry was not the last one.
        next = unsafe { next.add(1) };
    }
    if !list.is_null() {
        // SAFETY: the list is what if_nameindex made, and nothing refers to it from here on.
        unsafe { libc::if_freenameindex(list) };
    }
    found
}

/// `struct ptp_clock_time`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct ClockTime {
    seconds: i64,
    nanos: u32,
    reserved: u32,
}

impl ClockTime {
    fn as_nanos(self) -> i64 {
        self.seconds.saturating_mul(1_000_000_000).saturating_add(self.nanos.into())
    }
}

/// `struct ptp_sys_offset_precise`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Precise {
    device: ClockTime,
    realtime: ClockTime,
    raw: ClockTime,
    reserved: [u32; 4],
}

/// The most readings of one call.
const MOST_READINGS: usize = 25;

/// `struct ptp_sys_offset_extended`.
#[repr(C)]
struct Extended {
    readings: u32,
    /// Since Linux 6.12; before, a word that must be zero.
    clock: i32,
    reserved: [u32; 2],
    times: [[ClockTime; 3]; MOST_READINGS],
}

/// `struct ptp_sys_offset`.
#[repr(C)]
struct Plain {
    readings: u32,
    reserved: [u32; 3],
    times: [ClockTime; 2 * MOST_READINGS + 1],
}

/// `_IOC` of asm-generic/ioctl.h for the type of PTP clocks.
const fn command(direction: u32, number: u32, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | (b'=' as u32) << 8 | number
}

const WRITE: u32 = 1;
const WRITE_AND_READ: u32 = 3;
/// `PTP_SYS_OFFSET`, `PTP_SYS_OFFSET_PRECISE` and `PTP_SYS_OFFSET_EXTENDED`.
const PLAIN: u32 = command(WRITE, 5, size_of::<Plain>());
const PRECISE: u32 = command(WRITE_AND_READ, 8, size_of::<Precise>());
const EXTENDED: u32 = command(WRITE_AND_READ, 9, size_of::<Extended>());

/// The clock of a card, and clocks of the host read before it and after it [ns].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CardReading {
    pub(crate) before: i64,
    pub(crate) shown: i64,
    pub(crate) after: i64,
}

/// The clock of a card and `CLOCK_MONOTONIC_RAW`, latched at one moment.
pub(crate) fn read_precise(fd: BorrowedFd<'_>) -> io::Result<CardReading> {
    let mut reading = Precise::default();
    // SAFETY: the call writes one ptp_sys_offset_precise, which outlives it.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), PRECISE as _, &raw mut reading) })?;
    let raw = reading.raw.as_nanos();
    Ok(CardReading { before: raw, shown: reading.device.as_nanos(), after: raw })
}

/// The clock of a card between readings of `clock`, as close to it as the driver can.
pub(crate) fn read_extended(fd: BorrowedFd<'_>, clock: libc::clockid_t, count: usize) -> io::Result<Vec<CardReading>> {
    let count = count.min(MOST_READINGS);
    let times = [[ClockTime::default(); 3]; MOST_READINGS];
    let mut extended = Extended { readings: count as u32, clock, reserved: [0; 2], times };
    // SAFETY: the call reads and writes one ptp_sys_offset_extended, which outlives it.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), EXTENDED as _, &raw mut extended) })?;
    let of = |times: &[ClockTime; 3]| {
        let [before, shown, after] = times.map(ClockTime::as_nanos);
        CardReading { before, shown, after }
    };
    Ok(extended.times.iter().take(count).map(of).collect())
}

/// The clock of a card between readings of the system clock.
pub(crate) fn read_plain(fd: BorrowedFd<'_>, count: usize) -> io::Result<Vec<CardReading>> {
    let count = count.min(MOST_READINGS);
    let times = [ClockTime::default(); 2 * MOST_READINGS + 1];
    let mut plain = Plain { readings: count as u32, reserved: [0; 3], times };
    // SAFETY: the call reads and writes one ptp_sys_offset, which outlives it.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), PLAIN as _, &raw mut plain) })?;
    let nanos = plain.times.map(ClockTime::as_nanos);
    let of = |three: &[i64]| match three {
        [before, shown, after] => Some(CardReading { before: *before, shown: *shown, after: *after }),
        _ => None,
    };
    Ok(nanos.windows(3).step_by(2).take(count).filter_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_calls_have_the_numbers_of_the_kernels_headers() {
        assert_eq!([PLAIN, PRECISE, EXTENDED], [0x4340_3d05, 0xc040_3d08, 0xc4c0_3d09]);
    }

    #[test]
    fn the_loopback_has_no_clock_and_no_device_of_another_name_answers() {
        assert_eq!(stamp_abilities("lo").unwrap().clock, None);
        assert!(stamp_settings("lo").is_err());
        assert!(set_stamps("lo", StampSettings::of(1, 1)).is_err());
        assert!(stamp_abilities("no-such-device").is_err());
        assert!(stamp_abilities("a-name-that-is-longer-than-any").is_err());
        assert!(network_devices().iter().any(|(number, name)| name == "lo" && *number > 0));
    }

    #[test]
    fn what_is_no_clock_cannot_be_read() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(read_precise(null.as_fd()).is_err());
        assert!(read_extended(null.as_fd(), libc::CLOCK_REALTIME, 5).is_err());
        assert!(read_plain(null.as_fd(), 5).is_err());
    }
}

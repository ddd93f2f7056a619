//! Settings of FreeBSD's kernel, as sysctl(8) shows them. One of the files that may hold unsafe code.

use core::ffi::CStr;
use std::io;

/// The value of a setting, at most as many bytes as `room` has. Returns how many it is.
fn setting(name: &CStr, room: &mut [u8]) -> io::Result<usize> {
    let mut length = room.len();
    let place = room.as_mut_ptr().cast();
    // SAFETY: the name is a C string; the call writes at most `length` bytes to `room` and how many it wrote to
    // `length`, all of which outlive it; nothing new is given.
    let result = unsafe { libc::sysctlbyname(name.as_ptr(), place, &raw mut length, core::ptr::null(), 0) };
    if result == 0 { Ok(length.min(room.len())) } else { Err(io::Error::last_os_error()) }
}

/// The text of a setting.
///
/// # Errors
/// There is none of this name, or it is longer than a kilobyte.
pub(crate) fn text(name: &CStr) -> io::Result<String> {
    let mut room = [0; 1024];
    let length = setting(name, &mut room)?;
    let bytes = room.get(..length).unwrap_or_default();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(length);
    Ok(String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned())
}

/// The number of a setting, of 32 or 64 bits, not negative.
///
/// # Errors
/// There is none of this name, or it is no such number.
pub(crate) fn number(name: &CStr) -> io::Result<u64> {
    let mut room = [0; 8];
    match setting(name, &mut room)? {
        4 => Ok(u32::from_ne_bytes([room[0], room[1], room[2], room[3]]).into()),
        8 => Ok(u64::from_ne_bytes(room)),
        length => Err(io::Error::other(format!("{} is no number but {length} bytes", name.to_string_lossy()))),
    }
}

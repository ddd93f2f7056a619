//! The network devices of this host.

use crate::ffi;
use std::net::IpAddr;

/// The device that has this address; `None` where none has, or the kernel does not give the list.
pub fn device_with(address: IpAddr) -> Option<String> {
    let devices = ffi::device_addresses().ok()?;
    let has = |(_, raw): &&(String, crate::address::RawAddress)| raw.decode().is_some_and(|one| one.ip() == address);
    devices.iter().find(has).map(|(name, _)| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_its_address_and_no_device_has_that_of_a_document() {
        assert_eq!(device_with("127.0.0.1".parse().unwrap()).as_deref(), Some("lo"));
        assert_eq!(device_with("192.0.2.1".parse().unwrap()), None);
    }
}

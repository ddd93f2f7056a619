//! The network devices of this host.

use crate::ethernet::DeviceAddress;
use crate::ffi;
use std::ffi::CString;
use std::net::IpAddr;

/// Every address of this host, with the device that has it; none where the kernel does not give the list.
pub fn own_addresses() -> Vec<(String, IpAddr)> {
    let devices = ffi::device_addresses().unwrap_or_default();
    devices.into_iter().filter_map(|(name, raw)| Some((name, raw.decode()?.ip()))).collect()
}

/// The device that has this address; `None` where none has, or the kernel does not give the list.
pub fn device_with(address: IpAddr) -> Option<String> {
    own_addresses().into_iter().find(|(_, own)| *own == address).map(|(name, _)| name)
}

/// The addresses of a device; none where there is no such device, or the kernel does not give the list.
pub fn addresses_of(device: &str) -> Vec<IpAddr> {
    own_addresses().into_iter().filter(|(name, _)| name == device).map(|(_, own)| own).collect()
}

/// The address that a device of Ethernet has on its network, in the network namespace of the calling thread; `None` of
/// other devices, or where the kernel does not say.
pub fn hardware_address(device: &str) -> Option<DeviceAddress> {
    ffi::hardware::device_address(device).ok().flatten()
}

/// The number of a device in the network namespace of the calling thread; `None` where there is none of this name.
pub fn device_index(device: &str) -> Option<u32> {
    ffi::device_index(&CString::new(device).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_its_address_and_no_device_has_that_of_a_document() {
        assert_eq!(device_with("127.0.0.1".parse().unwrap()).as_deref(), Some("lo"));
        assert_eq!(device_with("192.0.2.1".parse().unwrap()), None);
    }
    #[test]
    fn a_device_has_a_number_and_its_addresses_and_none_of_another_name_has() {
        assert!(device_index("lo").is_some_and(|index| index > 0));
        assert!(addresses_of("lo").contains(&"127.0.0.1".parse().unwrap()));
        assert_eq!((device_index("no-such-device"), addresses_of("no-such-device")), (None, Vec::new()));
        assert_eq!(device_index("a\0b"), None);
        assert_eq!(["lo", "no-such-device"].map(hardware_address), [None; 2]);
    }
}

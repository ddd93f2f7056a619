//! Where a packet is stamped on its way through the host.

use super::payload::Direction;
use serde::{Deserialize, Serialize};

/// A place and a way to stamp there. In the order in which a packet passes them, outgoing ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Site {
    /// User space, right before sendmsg.
    UserSend,
    /// Tracing: the packet is queued for the device (`net_dev_queue`).
    QueueOut,
    /// The copy that the packet taps get (AF_PACKET).
    TapOut,
    /// Tracing: the packet is handed to the driver (`net_dev_start_xmit`).
    DriverOut,
    /// The socket's software transmit stamp (`SOF_TIMESTAMPING_TX_SOFTWARE`).
    SocketOut,
    /// Tracing: the driver is done with it (`net_dev_xmit`).
    DoneOut,
    /// Tracing: the driver hands it to the stack (`napi_gro_receive_entry`, or `netif_rx` where there is no NAPI).
    DriverIn,
    /// The socket's software receive stamp (`SOF_TIMESTAMPING_RX_SOFTWARE`).
    SocketIn,
    /// Tracing: the stack takes it (`netif_receive_skb`).
    StackIn,
    /// The copy that the packet taps get (AF_PACKET).
    TapIn,
    /// User space, right after recvmsg.
    UserReceive,
}

/// Which stamps a program would compare: what the paper calls a timestamping location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Location {
    /// Around the system calls.
    User,
    /// The kernel's software stamps of the socket.
    Socket,
    /// The packet tap.
    Tap,
    /// The boundary to the driver, by the kernel's tracing.
    Driver,
}

impl Site {
    /// Every site, in the order of the way.
    pub const ALL: [Site; 11] = [
        Site::UserSend,
        Site::QueueOut,
        Site::TapOut,
        Site::DriverOut,
        Site::SocketOut,
        Site::DoneOut,
        Site::DriverIn,
        Site::SocketIn,
        Site::StackIn,
        Site::TapIn,
        Site::UserReceive,
    ];

    /// Its place in [`Site::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Which packets pass it.
    pub fn direction(self) -> Direction {
        if self <= Site::DoneOut { Direction::Outgoing } else { Direction::Incoming }
    }

    /// Its name in records and in JSON, which says the direction too.
    pub fn key(self) -> String {
        // An enumeration without fields is a text; anything else would be a name that nothing reads back.
        serde_json::to_value(self).ok().and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
    }

    /// The site with this name.
    pub fn from_key(key: &str) -> Option<Self> {
        serde_json::from_value(key.into()).ok()
    }

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Site::UserSend => "user",
            Site::QueueOut => "queue",
            Site::TapOut => "tap",
            Site::DriverOut => "driver",
            Site::SocketOut => "socket",
            Site::DoneOut => "driver-done",
            Site::DriverIn => "driver",
            Site::SocketIn => "socket",
            Site::StackIn => "stack",
            Site::TapIn => "tap",
            Site::UserReceive => "user",
        }
    }
}

impl Location {
    /// Every location, from the one nearest to the program to the one nearest to the wire.
    pub const ALL: [Location; 4] = [Location::User, Location::Socket, Location::Tap, Location::Driver];

    /// Where it stamps (requests, replies).
    pub const fn sites(self) -> (Site, Site) {
        match self {
            Location::User => (Site::UserSend, Site::UserReceive),
            Location::Socket => (Site::SocketOut, Site::SocketIn),
            Location::Tap => (Site::TapOut, Site::TapIn),
            Location::Driver => (Site::DriverOut, Site::DriverIn),
        }
    }

    /// Its name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Location::User => "user",
            Location::Socket => "socket",
            Location::Tap => "tap",
            Location::Driver => "driver",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_site_has_one_name_in_records_and_in_json() {
        for site in Site::ALL {
            assert!(site.key().contains('-'), "{site:?}");
            assert_eq!(Site::from_key(&site.key()), Some(site));
        }
        assert_eq!(Site::UserSend.key(), "user-send");
        assert_eq!(Site::from_key("user"), None);
    }

    #[test]
    fn sites_stand_in_the_order_of_the_way() {
        assert!(Site::ALL.is_sorted());
        assert!(Site::ALL.iter().enumerate().all(|(index, site)| site.index() == index));
        assert!(
            Location::ALL.iter().map(|location| location.sites()).all(|(out, back)| {
                out.direction() == Direction::Outgoing && back.direction() == Direction::Incoming
            })
        );
    }
}

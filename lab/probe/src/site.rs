//! Where a packet is stamped on its way through the host.

use crate::payload::Direction;
use ffclock_counters::named;
use serde::{Deserialize, Serialize};

named! {
    /// A place and a way to stamp there. In the order in which a packet passes them, outgoing ones first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Site {
        /// User space, right before sendmsg.
        UserSend = "user",
        /// The receive stamp of the copy that a multicast request leaves for this host itself (`IP_MULTICAST_LOOP`).
        LoopOut = "loop",
        /// eBPF at tc egress.
        TcOut = "tc",
        /// The packet is queued for the device (`net_dev_queue`).
        QueueOut = "queue",
        /// The copy that the packet taps get (AF_PACKET).
        TapOut = "tap",
        /// The packet is handed to the driver (`net_dev_start_xmit`).
        DriverOut = "driver",
        /// The socket's software transmit stamp (`SOF_TIMESTAMPING_TX_SOFTWARE`).
        SocketOut = "socket",
        /// The other end of the link receives it, outside this host's stack.
        WireOut = "wire",
        /// The driver is done with it (`net_dev_xmit`).
        DoneOut = "driver-done",
        /// The other end of the link sends it, outside this host's stack.
        WireIn = "wire",
        /// eBPF at XDP, before the driver makes a packet of it.
        XdpIn = "xdp",
        /// The driver hands it to the stack (`napi_gro_receive_entry`, or `netif_rx` where there is no NAPI).
        DriverIn = "driver",
        /// The socket's software receive stamp (`SOF_TIMESTAMPING_RX_SOFTWARE`).
        SocketIn = "socket",
        /// The stack takes it (`netif_receive_skb`).
        StackIn = "stack",
        /// The copy that the packet taps get (AF_PACKET).
        TapIn = "tap",
        /// eBPF at tc ingress.
        TcIn = "tc",
        /// eBPF: it is put into the socket's queue (`__udp_enqueue_schedule_skb`, by fentry or kprobe).
        QueueIn = "socket-queue",
        /// Its bytes are copied to user space (`skb_copy_datagram_iovec`; not every packet is copied that way).
        CopyIn = "copy",
        /// User space has read it from the socket (`sock_recv_length`).
        ReadIn = "read",
        /// User space, right after recvmsg.
        UserReceive = "user",
    }
}

named! {
    /// Which stamps a program would compare: what the paper calls a timestamping location. From the one nearest to the
    /// program to the one nearest to the wire.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum TimestampingLocation {
        /// Around the system calls.
        User = "user",
        /// The stamps that the paper's socket has: of the copy of a multicast packet, and of the socket.
        MulticastCopy = "multicast copy",
        /// The kernel's software stamps of the socket.
        Socket = "socket",
        /// The packet tap.
        Tap = "tap",
        /// The boundary to the driver, by the kernel's tracing.
        Driver = "driver",
    }
}

impl Site {
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
}

impl TimestampingLocation {
    /// Where it stamps (requests, replies).
    pub const fn sites(self) -> (Site, Site) {
        match self {
            TimestampingLocation::User => (Site::UserSend, Site::UserReceive),
            TimestampingLocation::MulticastCopy => (Site::LoopOut, Site::SocketIn),
            TimestampingLocation::Socket => (Site::SocketOut, Site::SocketIn),
            TimestampingLocation::Tap => (Site::TapOut, Site::TapIn),
            TimestampingLocation::Driver => (Site::DriverOut, Site::DriverIn),
        }
    }
}

/// A set of sites; in records and in JSON a list of their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<Site>", from = "Vec<String>")]
pub struct Sites(u32);

impl From<Sites> for Vec<Site> {
    fn from(sites: Sites) -> Self {
        sites.iter().collect()
    }
}

impl From<Vec<String>> for Sites {
    /// Names of sites that this program does not know are passed over.
    fn from(names: Vec<String>) -> Self {
        names.iter().filter_map(|name| Site::from_key(name)).fold(Sites::NONE, Sites::with)
    }
}

impl Sites {
    /// No site.
    pub const NONE: Sites = Sites(0);
    /// The boundary to the driver, which everything else is measured against.
    pub const DRIVER: Sites = Sites::of(&[Site::DriverOut, Site::DriverIn]);
    /// What the kernel's tracing sees.
    pub const TRACED: Sites =
        Sites::of(&[Site::QueueOut, Site::DoneOut, Site::StackIn, Site::CopyIn, Site::ReadIn]).and(Sites::DRIVER);
    /// What eBPF sees without changing the way of the packets. XDP does: a driver with XDP makes its packets in another
    /// way, and some drivers stop for a moment to change over.
    pub const PROGRAMMED: Sites = Sites::of(&[Site::TcOut, Site::TcIn, Site::QueueIn]).and(Sites::TRACED);

    /// These sites.
    pub const fn of(sites: &[Site]) -> Self {
        let (mut set, mut index) = (0, 0);
        while index < sites.len() {
            set |= 1 << sites[index].index();
            index += 1;
        }
        Sites(set)
    }

    /// With those of another set.
    #[must_use]
    pub const fn and(self, other: Sites) -> Self {
        Sites(self.0 | other.0)
    }

    /// With one more site.
    #[must_use]
    pub const fn with(self, site: Site) -> Self {
        Sites(self.0 | 1 << site.index())
    }

    /// Whether a site is among them.
    pub const fn contains(self, site: Site) -> bool {
        self.0 & (1 << site.index()) != 0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them, in the order of the way.
    pub fn iter(self) -> impl Iterator<Item = Site> {
        Site::ALL.into_iter().filter(move |site| self.contains(*site))
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
            TimestampingLocation::ALL.iter().map(|location| location.sites()).all(|(out, back)| {
                out.direction() == Direction::Outgoing && back.direction() == Direction::Incoming
            })
        );
    }

    #[test]
    fn a_set_holds_what_was_put_into_it() {
        let set = Sites::of(&[Site::TapIn, Site::QueueOut]).and(Sites::of(&[Site::UserReceive]));
        assert_eq!(set.iter().collect::<Vec<_>>(), [Site::QueueOut, Site::TapIn, Site::UserReceive]);
        assert!(set.contains(Site::TapIn) && !set.contains(Site::TapOut));
        let text = serde_json::to_string(&set).expect("a list");
        assert_eq!(text, r#"["queue-out","tap-in","user-receive"]"#);
        assert_eq!(serde_json::from_str::<Sites>(&text).expect("the same list"), set);
        assert_eq!(
            serde_json::from_str::<Sites>(r#"["of-tomorrow","tap-in"]"#).expect("a list"),
            Sites::of(&[Site::TapIn])
        );
        assert!(Sites::NONE.is_empty() && Sites::NONE.iter().next().is_none());
        assert!(Sites::TRACED.contains(Site::DriverIn) && !Sites::PROGRAMMED.contains(Site::XdpIn));
    }
}

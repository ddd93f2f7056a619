#!/usr/sbin/dtrace -s
/*
 * Where packets wait in a FreeBSD host: the stamping locations of "Probing the Latencies of Software Timestamping", for
 * packets of probe-client on their way to `ffclock-lab probe echo` and back. As root:
 *
 *   cc -O2 -o probe-client probe-client.c
 *   tcpdump -i igb0 -w /dev/null udp port 8777 &        (without a listener the kernel calls no tap)
 *   dtrace -s probe.d -c './probe-client 192.0.2.7 10000 100' -o freebsd.txt igb0
 *
 * On any machine: ffclock-lab probe show freebsd.txt, and ffclock-lab report freebsd.txt -o freebsd.html.
 *
 * It prints one line for each time that a packet passes a location, with DTrace's timestamp [ns] and the length of the
 * UDP payload, which identifies the packet; docs/probe.md describes the format. The events of one CPU may come after
 * those of another.
 *
 * IPv4 over Ethernet without VLAN tags. The driver's boundary is that of iflib (em, igb, ix, ixl, ice and more): for
 * another driver replace iflib_if_transmit with its transmit function. A socket has no stamp on the way out here: the
 * paper took it from a multicast copy that comes back over loopback, and found that it breaks causality.
 */
#pragma D option quiet
#pragma D option bufsize=16m
#pragma D option switchrate=20hz

inline int PORT = 8777;
/* The length of the shortest request of probe-client. */
inline int SIZE = 64;
/* Bytes of the headers below the payload. */
inline int ETHERNET = 14;
inline int IP_AND_UDP = 28;

BEGIN
{
	printf("{\"format\":\"ffclock dtrace 1\",\"system\":\"FreeBSD %s\",\"device\":\"%s\",\"size\":%d}\n", stringof(`osrelease), $$1, SIZE);
}

syscall::sendto:entry
/pid == $target/
{
	printf("{\"ns\":%d,\"site\":\"user-send\",\"length\":%d}\n", timestamp, arg2);
}

fbt::ether_output:entry
/ntohs(*(uint16_t *)(((struct mbuf *)arg1)->m_data + 22)) == PORT/
{
	printf("{\"ns\":%d,\"site\":\"queue-out\",\"length\":%d}\n", timestamp, ((struct mbuf *)arg1)->m_pkthdr.len - IP_AND_UDP);
}

fbt::bpf_mtap:entry
/((struct mbuf *)arg1)->m_pkthdr.rcvif == NULL && ntohs(*(uint16_t *)(((struct mbuf *)arg1)->m_data + ETHERNET + 22)) == PORT/
{
	printf("{\"ns\":%d,\"site\":\"tap-out\",\"length\":%d}\n", timestamp, ((struct mbuf *)arg1)->m_pkthdr.len - ETHERNET - IP_AND_UDP);
}

fbt::iflib_if_transmit:entry
/ntohs(*(uint16_t *)(((struct mbuf *)arg1)->m_data + ETHERNET + 22)) == PORT/
{
	printf("{\"ns\":%d,\"site\":\"driver-out\",\"length\":%d}\n", timestamp, ((struct mbuf *)arg1)->m_pkthdr.len - ETHERNET - IP_AND_UDP);
}

fbt::ether_input:entry
/ntohs(*(uint16_t *)(((struct mbuf *)arg1)->m_data + ETHERNET + 20)) == PORT/
{
	printf("{\"ns\":%d,\"site\":\"driver-in\",\"length\":%d}\n", timestamp, ((struct mbuf *)arg1)->m_pkthdr.len - ETHERNET - IP_AND_UDP);
}

fbt::bpf_mtap:entry
/((struct mbuf *)arg1)->m_pkthdr.rcvif != NULL && ntohs(*(uint16_t *)(((struct mbuf *)arg1)->m_data + ETHERNET + 20)) == PORT/
{
	printf("{\"ns\":%d,\"site\":\"tap-in\",\"length\":%d}\n", timestamp, ((struct mbuf *)arg1)->m_pkthdr.len - ETHERNET - IP_AND_UDP);
}

fbt::ip_input:entry
/ntohs(*(uint16_t *)(((struct mbuf *)arg0)->m_data + 20)) == PORT/
{
	printf("{\"ns\":%d,\"site\":\"stack-in\",\"length\":%d}\n", timestamp, ((struct mbuf *)arg0)->m_pkthdr.len - IP_AND_UDP);
}

/* Here the kernel takes the stamp of SO_TIMESTAMP, which probe-client asks for. */
fbt::ip_savecontrol:entry
/ntohs(*(uint16_t *)(((struct mbuf *)arg3)->m_data + 20)) == PORT/
{
	printf("{\"ns\":%d,\"site\":\"socket-in\",\"length\":%d}\n", timestamp, ((struct mbuf *)arg3)->m_pkthdr.len - IP_AND_UDP);
}

syscall::recvfrom:return
/pid == $target && (int)arg1 > 0/
{
	printf("{\"ns\":%d,\"site\":\"user-receive\",\"length\":%d}\n", timestamp, arg1);
}

END
{
	printf("{\"record\":\"end\"}\n");
}

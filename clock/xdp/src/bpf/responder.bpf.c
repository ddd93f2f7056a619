// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0 OR MIT)
//
// Answers plain NTP requests in the driver. A request is turned into its reply where it lies, and sent back out of the
// device that it came from. Every other packet goes on to the network stack as if this program were not there: the
// server's sockets answer what is more than plain.
//
// Plain is: Ethernet with at most two VLAN tags, IPv4 without options or IPv6 without extension headers, no fragment,
// UDP to an address and port that are served, and a payload of exactly 48 bytes: an NTP client's request (mode 3) of
// version 3 or 4.
//
// The time is a line over CLOCK_BOOTTIME, the clock of the kernel's that a program may read and that runs through
// suspend. The process renews the line several times a second and states how far it may be wrong, also by what another
// program may do to that clock in between (../line.rs).
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

// The kernel gives bpf_ktime_get_boot_ns() to GPL-compatible programs only.
char LICENSE[] SEC("license") = "Dual MIT/GPL";

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

// The served port, in network order; written before the program is loaded.
const volatile u16 port = 0;

// What is served, over CLOCK_BOOTTIME. Words only, because the check is over words.
struct line {
	u64 reference_ns; // CLOCK_BOOTTIME
	u64 time; // then [2^-32 s of an NTP era]
	u64 rate; // [2^-(32 + RATE_BITS) s per ns]
	u64 dispersion; // at the reference [2^-32 s]
	u64 dispersion_rate; // [2^-(32 + RATE_BITS) s per ns]
	u64 longest_ns; // how long after its reference the line may be served; 0: there is none
	u64 header; // the first and the second word of the packet, as they lie there, without version, mode and poll
	u64 reference_id; // as it lies in the packet
	u64 reference_time; // as it lies in the packet
	u64 check;
};

#define WORDS 10
#define RATE_BITS 30

// Two lines, and which of them holds. The process fills the other one and then points here, so that a packet finds a
// whole line. A packet that was held up for a whole renewal between two instructions would find words of two lines:
// then the check does not hold, and the packet goes on to the sockets.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct line);
} lines SEC(".maps");

struct rules {
	u64 interval_ns; // between requests of one address in the long run; 0: no limit
	u64 burst_ns; // how far an address may be ahead of that
	u32 verdict; // about an address that no network of the lists holds
	u32 has_networks;
	u32 passes_interleaved;
	u32 line; // which line holds
	u32 leak; // one of this number of requests beyond the limit is answered; 0: none
	u32 kiss; // one of this number of requests without an answer gets a refusal; 0: none
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct rules);
} rules SEC(".maps");

// An address of IPv4 is kept as its mapped address of IPv6 (RFC 4291, section 2.5.5.2).
struct address {
	u32 words[4];
};

// The addresses that are served: on a router, packets to others pass by here too.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct address);
	__type(value, u32);
} served SEC(".maps");

enum verdict {
	VERDICT_ANSWER,
	VERDICT_PASS,
	VERDICT_DROP,
};

struct network {
	u32 prefix; // [bits]
	struct address address;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct network);
	__type(value, u32);
} networks SEC(".maps");

// When each address would be back at its average, by CLOCK_BOOTTIME: a token bucket in one word. An address of IPv4,
// or the first half of one of IPv6. The least recently seen gives way.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536); /* as the process that loads it says */
	__type(key, u64);
	__type(value, u64);
} buckets SEC(".maps");

// Outcomes for packets to the served port, in the order of Outcome in ../counts.rs.
enum outcome {
	REPLIED,
	LEAKED,
	KISS_RATE,
	KISS_DENY,
	LIMITED,
	DENIED,
	PASSED_ADDRESS,
	PASSED_FORM,
	PASSED_MODE,
	PASSED_SOURCE,
	PASSED_CHECKSUM,
	PASSED_INTERLEAVED,
	PASSED_NETWORK,
	PASSED_STALE,
	PASSED_TORN,
	OUTCOMES,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, OUTCOMES);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

static __always_inline int counted(u32 outcome, int action)
{
	u64 *count = bpf_map_lookup_elem(&counts, &outcome);

	if (count)
		*count += 1;
	return action;
}

static __always_inline int passed(u32 outcome)
{
	return counted(outcome, XDP_PASS);
}

// An NTP packet in words as they lie there (RFC 5905, section 7.3).
struct ntp {
	u32 head; // leap, version and mode; stratum; poll; precision
	u32 root_delay;
	u32 root_dispersion;
	u32 reference_id;
	u32 reference_time[2];
	u32 origin[2];
	u32 receive[2];
	u32 transmit[2];
};

#define NTP_BYTES 48
#define UDP_BYTES (sizeof(struct udphdr) + NTP_BYTES)

// The sum of RFC 1071 over words in the order in which they lie there, to 16 bits.
static __always_inline u16 folded(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

// The sum over this number of words, a constant. As a macro, so that no loop is left: the verifier wants CAP_PERFMON
// for a pointer that a loop moves.
#define SUM_OF(place, count)                                       \
	({                                                         \
		const u32 *words_ = (const u32 *)(place);          \
		u64 sum_ = 0;                                      \
		_Pragma("unroll") for (u32 i = 0; i < (count); i++) \
			sum_ += words_[i];                         \
		sum_;                                              \
	})

// Whether the frame ends where the header does. The verifier learns what may be read from "not beyond the end" alone,
// so the compiler must not make one comparison of the two.
static __always_inline int ends_with(struct ntp *ntp, void *end)
{
	void *behind = ntp + 1;

	if (behind > end)
		return 0;
	barrier_var(behind);
	// An equality of pointers would take CAP_PERFMON.
	return !(behind + 1 <= end);
}

// What a reply is made from.
struct reply {
	u64 time; // [2^-32 s of an NTP era]
	u32 root_dispersion; // [2^-16 s]
	u64 header;
	u32 reference_id;
	u64 reference_time;
};

static __always_inline u64 word_checked(u64 word, u32 place)
{
	return word * (0x9e3779b97f4a7c15ULL * (2 * place + 1));
}

// The line at this moment; 0, or the outcome for which there is none.
static __always_inline u32 read_line(const struct rules *rule, u64 *now, struct reply *reply)
{
	u32 which = *(volatile const u32 *)&rule->line & 1;
	const volatile struct line *line = bpf_map_lookup_elem(&lines, &which);
	u64 words[WORDS], check = 0, age, dispersion;

	if (!line)
		return PASSED_STALE;
#pragma unroll
	for (u32 i = 0; i < WORDS; i++)
		words[i] = ((const volatile u64 *)line)[i];
#pragma unroll
	for (u32 i = 0; i < WORDS - 1; i++)
		check += word_checked(words[i], i);
	if (check != words[WORDS - 1])
		return PASSED_TORN;
	*now = bpf_ktime_get_boot_ns();
	age = *now - words[0];
	// A time before the reference is a very long age.
	if (age >= words[5])
		return PASSED_STALE;
	// The process keeps `longest_ns` at most 2^30, and both rates below 2^33: no product is too large.
	reply->time = words[1] + (words[2] * age >> RATE_BITS);
	dispersion = words[3] + (words[4] * age >> RATE_BITS) + 1;
	dispersion = (dispersion + 0xffff) >> 16;
	if (dispersion > 0xffffffff || !reply->time)
		return PASSED_STALE;
	reply->root_dispersion = dispersion;
	reply->header = words[6];
	reply->reference_id = words[7];
	reply->reference_time = words[8];
	return 0;
}

// 0 where the address is within its limit, or the outcome. A bucket that two processors fill at the same time lets one
// request more through, at most.
static __always_inline u32 limit(const struct rules *rule, u64 key, u64 now)
{
	u64 interval = rule->interval_ns, first, *bucket;

	if (!interval)
		return 0;
	bucket = bpf_map_lookup_elem(&buckets, &key);
	if (!bucket) {
		first = now + interval;
		bpf_map_update_elem(&buckets, &key, &first, BPF_ANY);
		return 0;
	}
	first = *bucket;
	if ((s64)(first - now) < 0)
		first = now;
	if (first - now > rule->burst_ns)
		return LIMITED;
	*bucket = first + interval;
	return 0;
}

static __always_inline u32 judge(const struct rules *rule, const struct address *source)
{
	struct network key = { .prefix = 128, .address = *source };
	const u32 *verdict = 0;
	u32 found = rule->verdict;

	if (rule->has_networks)
		verdict = bpf_map_lookup_elem(&networks, &key);
	if (verdict)
		found = *verdict;
	if (found == VERDICT_ANSWER)
		return 0;
	return found == VERDICT_DROP ? DENIED : PASSED_NETWORK;
}

// Fills the reply into the request's place, and returns the sum over it.
static __always_inline u64 fill(struct ntp *ntp, const struct reply *reply)
{
	// Version and poll are the request's, the mode becomes a server's.
	u32 kept = ntp->head & bpf_htonl(0x3800ff00);
	// As in the sockets' replies, the lowest bit shows which time a client names later: that of arrival is odd, that
	// of leaving even. Only clients of the interleaved mode name the former (RFC 9769, section 2).
	u64 left = (reply->time + 1) & ~1ULL, came = left - 1;

	ntp->head = kept | (u32)reply->header | bpf_htonl(0x04000000);
	ntp->root_delay = reply->header >> 32;
	ntp->root_dispersion = bpf_htonl(reply->root_dispersion);
	ntp->reference_id = reply->reference_id;
	ntp->reference_time[0] = (u32)reply->reference_time;
	ntp->reference_time[1] = reply->reference_time >> 32;
	ntp->origin[0] = ntp->transmit[0];
	ntp->origin[1] = ntp->transmit[1];
	ntp->receive[0] = bpf_htonl(came >> 32);
	ntp->receive[1] = bpf_htonl((u32)came);
	ntp->transmit[0] = bpf_htonl(left >> 32);
	ntp->transmit[1] = bpf_htonl((u32)left);
	return SUM_OF(ntp, 12);
}

// Fills a refusal (RFC 5905, section 7.4), and returns the sum over it. It discloses no time: its times are the
// request's own.
static __always_inline u64 fill_refusal(struct ntp *ntp, u32 code)
{
	ntp->head = (ntp->head & bpf_htonl(0x3800ff00)) | bpf_htonl(0xc4000000);
	ntp->root_delay = ntp->root_dispersion = 0;
	ntp->reference_id = code;
	ntp->reference_time[0] = ntp->reference_time[1] = 0;
	ntp->origin[0] = ntp->receive[0] = ntp->transmit[0];
	ntp->origin[1] = ntp->receive[1] = ntp->transmit[1];
	return SUM_OF(ntp, 12);
}

static __always_inline int one_in(u32 number)
{
	return number && bpf_get_prandom_u32() % number == 0;
}

// What both versions of IP have in common.
struct request {
	struct address source;
	struct address target;
	u64 pseudo; // sum over the pseudo header: addresses, protocol, length
	u64 bucket;
};

static __always_inline void swap_ends(struct ethhdr *link, struct udphdr *udp)
{
	u16 *words = (u16 *)link, word;

#pragma unroll
	for (u32 i = 0; i < 3; i++) {
		word = words[i];
		words[i] = words[i + 3];
		words[i + 3] = word;
	}
	word = udp->source;
	udp->source = udp->dest;
	udp->dest = word;
}

// A checksum that is right, or that is still to be made. Where the sender leaves it to its device and that device is
// our own host's (veth), it is the sum over the pseudo header alone.
static __always_inline int has_good_checksum(const struct udphdr *udp, const struct ntp *ntp, u64 pseudo)
{
	u64 sum = pseudo + SUM_OF(udp, 2) + SUM_OF(ntp, 12);

	return folded(sum) == 0xffff || udp->check == folded(pseudo);
}

// Whether the frame is to be sent back.
static __always_inline int is_answer(u32 outcome)
{
	return outcome <= KISS_DENY;
}

// What becomes of a request, by the rules and the line; the reply that it gets from a line.
static __always_inline u32 decide(const struct rules *rule, const struct request *request, struct reply *reply)
{
	u32 outcome = judge(rule, &request->source);
	u64 now;

	if (outcome == DENIED)
		return one_in(rule->kiss) ? KISS_DENY : DENIED;
	if (outcome)
		return outcome;
	outcome = read_line(rule, &now, reply);
	if (outcome)
		return outcome;
	if (!limit(rule, request->bucket, now))
		return REPLIED;
	if (one_in(rule->leak))
		return LEAKED;
	return one_in(rule->kiss) ? KISS_RATE : LIMITED;
}

// Judges the request, and makes it the reply up to the UDP header where it gets one.
static __always_inline u32 answer(struct udphdr *udp, struct ntp *ntp, const struct request *request)
{
	u32 zero = 0, outcome, first = *(u8 *)ntp, version = first >> 3 & 7;
	const struct rules *rule = bpf_map_lookup_elem(&rules, &zero);
	struct reply reply = {};
	u64 sum = request->pseudo;

	if ((first & 7) != 3 || version < 3 || version > 4)
		return PASSED_MODE;
	if (!udp->source)
		return PASSED_SOURCE;
	if (!rule)
		return PASSED_STALE;
	if (rule->passes_interleaved && (ntp->origin[1] & bpf_htonl(1)) &&
	    (ntp->receive[0] != ntp->transmit[0] || ntp->receive[1] != ntp->transmit[1]))
		return PASSED_INTERLEAVED;
	outcome = decide(rule, request, &reply);
	if (!is_answer(outcome))
		return outcome;
	if (outcome == REPLIED || outcome == LEAKED)
		sum += fill(ntp, &reply);
	else
		sum += fill_refusal(ntp, outcome == KISS_RATE ? bpf_htonl(0x52415445) : bpf_htonl(0x44454e59));
	udp->check = 0;
	sum += SUM_OF(udp, 2);
	sum = (u16)~folded(sum);
	// A sum of zero would mean that there is none.
	udp->check = sum ? sum : 0xffff;
	return outcome;
}

static __always_inline int finished(u32 outcome)
{
	return outcome == LIMITED || outcome == DENIED ? counted(outcome, XDP_DROP) : passed(outcome);
}

static __always_inline int is_served(const struct address *target)
{
	return bpf_map_lookup_elem(&served, target) != 0;
}

// This network, loopback, multicast and what is beyond: nothing there can be answered.
static __always_inline int is_odd_source_v4(u32 address)
{
	u8 first = bpf_ntohl(address) >> 24;

	return first == 0 || first == 127 || first >= 224;
}

static __always_inline int answer_v4(struct ethhdr *link, struct iphdr *ip, void *end)
{
	struct udphdr *udp = (struct udphdr *)(ip + 1);
	struct ntp *ntp = (struct ntp *)(udp + 1);
	struct request request = {};
	u32 outcome;

	if ((void *)ntp > end || *(u8 *)ip != 0x45 || ip->protocol != IPPROTO_UDP || udp->dest != port)
		return XDP_PASS;
	// The ports of a later fragment are payload; the stack puts fragments together.
	if (ip->frag_off & bpf_htons(0x3fff))
		return XDP_PASS;
	request.source.words[2] = request.target.words[2] = bpf_htonl(0xffff);
	request.source.words[3] = ip->saddr;
	request.target.words[3] = ip->daddr;
	if (!is_served(&request.target))
		return passed(PASSED_ADDRESS);
	if (!ends_with(ntp, end) || ip->tot_len != bpf_htons(sizeof(*ip) + UDP_BYTES) ||
	    udp->len != bpf_htons(UDP_BYTES))
		return passed(PASSED_FORM);
	if (is_odd_source_v4(ip->saddr) || ip->saddr == ip->daddr)
		return passed(PASSED_SOURCE);
	request.pseudo = (u64)ip->saddr + ip->daddr + bpf_htonl(IPPROTO_UDP << 16 | UDP_BYTES);
	if (folded(SUM_OF(ip, 5)) != 0xffff || (udp->check && !has_good_checksum(udp, ntp, request.pseudo)))
		return passed(PASSED_CHECKSUM);
	// Beside the first halves of IPv6 addresses: there is none in ffff::/16, which is multicast.
	request.bucket = 0xffffffff00000000ULL | ip->saddr;
	outcome = answer(udp, ntp, &request);
	if (!is_answer(outcome))
		return finished(outcome);
	ip->saddr = request.target.words[3];
	ip->daddr = request.source.words[3];
	ip->tos = 0;
	ip->id = 0;
	ip->frag_off = bpf_htons(0x4000);
	ip->ttl = 64;
	ip->check = 0;
	ip->check = ~folded(SUM_OF(ip, 5));
	swap_ends(link, udp);
	return counted(outcome, XDP_TX);
}

static __always_inline int is_odd_source_v6(const struct address *source)
{
	u32 first = source->words[0], rest = source->words[1] | source->words[2];

	// Multicast; unspecified, loopback, and all that stands for IPv4.
	return (first & bpf_htonl(0xff000000)) == bpf_htonl(0xff000000) ||
	       (!(first | source->words[1]) && (!source->words[2] || source->words[2] == bpf_htonl(0xffff))) ||
	       !(first | rest | source->words[3]);
}

static __always_inline int answer_v6(struct ethhdr *link, struct ipv6hdr *ip, void *end)
{
	struct udphdr *udp = (struct udphdr *)(ip + 1);
	struct ntp *ntp = (struct ntp *)(udp + 1);
	u32 *addresses = (u32 *)&ip->saddr, outcome;
	struct request request;

	if ((void *)ntp > end || *(u8 *)ip >> 4 != 6 || ip->nexthdr != IPPROTO_UDP || udp->dest != port)
		return XDP_PASS;
#pragma unroll
	for (u32 i = 0; i < 4; i++) {
		request.source.words[i] = addresses[i];
		request.target.words[i] = addresses[i + 4];
	}
	if (!is_served(&request.target))
		return passed(PASSED_ADDRESS);
	if (!ends_with(ntp, end) || ip->payload_len != bpf_htons(UDP_BYTES) || udp->len != bpf_htons(UDP_BYTES))
		return passed(PASSED_FORM);
	if (is_odd_source_v6(&request.source))
		return passed(PASSED_SOURCE);
	request.pseudo = SUM_OF(addresses, 8) + bpf_htonl(IPPROTO_UDP << 16 | UDP_BYTES);
	// IPv6 has no packets without a checksum (RFC 8200, section 8.1).
	if (!udp->check || !has_good_checksum(udp, ntp, request.pseudo))
		return passed(PASSED_CHECKSUM);
	request.bucket = (u64)request.source.words[0] << 32 | request.source.words[1];
	outcome = answer(udp, ntp, &request);
	if (!is_answer(outcome))
		return finished(outcome);
#pragma unroll
	for (u32 i = 0; i < 4; i++) {
		addresses[i] = request.target.words[i];
		addresses[i + 4] = request.source.words[i];
	}
	// Traffic class and flow label are the request's own business.
	*(u32 *)ip = bpf_htonl(0x60000000);
	ip->hop_limit = 64;
	swap_ends(link, udp);
	return counted(outcome, XDP_TX);
}

struct tag {
	u16 control;
	u16 type;
};

SEC("xdp.frags")
int responder(struct xdp_md *context)
{
	void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	struct ethhdr *link = data;
	void *network = link + 1;
	u16 type;

	// A request to a group of hosts, or one whose reply would go to a group: no host sends from such an address.
	if (network > end || (link->h_dest[0] | link->h_source[0]) & 1)
		return XDP_PASS;
	type = link->h_proto;
#pragma unroll
	for (u32 i = 0; i < 2; i++) {
		struct tag *tag = network;

		if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD))
			break;
		if ((void *)(tag + 1) > end)
			return XDP_PASS;
		type = tag->type;
		network = tag + 1;
	}
	if (type == bpf_htons(ETH_P_IP))
		return answer_v4(link, network, end);
	if (type == bpf_htons(ETH_P_IPV6))
		return answer_v6(link, network, end);
	return XDP_PASS;
}

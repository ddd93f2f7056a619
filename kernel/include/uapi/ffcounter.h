/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * ffcounter: cumulative 64-bit counters over the hardware counters of a machine.
 *
 * The interface between user space and the module. Every structure has the same
 * layout for 32-bit and 64-bit programs; numbers are in the byte order of the
 * machine, except ports and addresses, which are as in the packet.
 */
#ifndef _UAPI_FFCOUNTER_H
#define _UAPI_FFCOUNTER_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define FFCOUNTER_VERSION 1

/* The counters. */
enum ffcounter_id {
	FFCOUNTER_ACTIVE = 0,		/* the one that the kernel keeps time with */
	FFCOUNTER_TSC = 1,
	FFCOUNTER_HPET = 2,
	FFCOUNTER_ACPI_PM = 3,		/* one read of the register */
	FFCOUNTER_ACPI_PM_SAFE = 4,	/* read until three reads are in order */
	FFCOUNTER_KVM_CLOCK = 5,
	FFCOUNTER_COUNT = 6,
};

/* The kernel keeps time with it now. */
#define FFCOUNTER_F_ACTIVE	(1u << 0)
/* It can be read without a system call: see struct ffcounter_page. */
#define FFCOUNTER_F_PAGE	(1u << 1)
/* The kernel found it unsteady. */
#define FFCOUNTER_F_UNTRUSTED	(1u << 2)

/*
 * One reading. Values of one epoch never go backwards and never wrap; values
 * of different epochs are unrelated.
 */
struct ffcounter_sample {
	__u64 value;			/* cumulative ticks */
	__u64 frequency_millihertz;	/* nominal */
	__u32 epoch;
	__u16 id;			/* enum ffcounter_id */
	__u16 width;			/* of the hardware counter, bits */
	__u32 flags;			/* FFCOUNTER_F_* */
	__u32 underlying;		/* of ACTIVE: the id behind it; else id */
};

/*
 * A counter and two clocks of the kernel from one snapshot. The clocks have
 * their values of one moment between sample.value and value_after; for the
 * counter that the kernel keeps time with, both are the same reading.
 */
struct ffcounter_pair {
	struct ffcounter_sample sample;
	__u64 value_after;
	__s64 realtime_ns;		/* CLOCK_REALTIME */
	__s64 monotonic_raw_ns;		/* CLOCK_MONOTONIC_RAW */
};

/*
 * The cost of a reading within the kernel, in TSC cycles: four ordered readings
 * of the TSC. Nothing lies between the first two, the register of the counter
 * alone between the next two, and the whole interface between the last two.
 */
struct ffcounter_latency {
	__u64 tsc[4];
	__u32 id;
	__u32 epoch;
};

#define FFCOUNTER_MAX_PORTS 16

/*
 * The packets to stamp: UDP, to or from one of the ports. An empty list ends
 * it. Needs CAP_NET_RAW, since stamps hold the beginning of each packet.
 */
struct ffcounter_stamping {
	__u32 id;			/* the counter that stamps */
	__u32 count;
	__u16 ports[FFCOUNTER_MAX_PORTS];
};

#define FFCOUNTER_SENT 1		/* right before the driver takes it */
#define FFCOUNTER_RECEIVED 2		/* right after the driver delivers it */
#define FFCOUNTER_HEAD 48

/* One packet, as read(2) returns it: whole records only. */
struct ffcounter_stamp {
	__u64 value;
	__u32 epoch;
	__u32 lost;			/* unread records replaced so far */
	__u32 ifindex;
	__u16 id;			/* the counter */
	__u8 direction;			/* FFCOUNTER_SENT or _RECEIVED */
	__u8 family;			/* 4 or 6 */
	__u16 length;			/* of the UDP payload, bytes */
	__u16 head_length;		/* bytes of head that count */
	__u16 source_port;		/* ports and addresses: network order */
	__u16 destination_port;
	__u8 source[16];		/* IPv4: the first four bytes */
	__u8 destination[16];
	__u8 head[FFCOUNTER_HEAD];	/* the beginning of the UDP payload */
};

/*
 * A page of a counter that user space can read itself, mapped read-only at
 * offset id * page size. While sequence is even and the same before and after,
 * state is FFCOUNTER_PAGE_TSC and the TSC read in between is the cumulative
 * value of epoch. In any other state the ioctl must be used.
 */
struct ffcounter_page {
	__u32 version;
	__u32 sequence;
	__u32 state;
	__u32 epoch;
	__u64 frequency_millihertz;
};

#define FFCOUNTER_PAGE_CLOSED 0
#define FFCOUNTER_PAGE_TSC 1

/*
 * ENODEV: the machine has no such counter. EAGAIN: it is being put to sleep or
 * woken up; a new epoch follows.
 */
#define FFCOUNTER_MAGIC 0xFC
#define FFCOUNTER_GET_VERSION	_IOR(FFCOUNTER_MAGIC, 0x01, __u32)
#define FFCOUNTER_SET_STAMPING	_IOW(FFCOUNTER_MAGIC, 0x02, struct ffcounter_stamping)
#define FFCOUNTER_READ(id)	_IOR(FFCOUNTER_MAGIC, 0x10 + (id), struct ffcounter_sample)
#define FFCOUNTER_PAIR(id)	_IOR(FFCOUNTER_MAGIC, 0x20 + (id), struct ffcounter_pair)
#define FFCOUNTER_LATENCY(id)	_IOR(FFCOUNTER_MAGIC, 0x30 + (id), struct ffcounter_latency)

#endif /* _UAPI_FFCOUNTER_H */

// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0 OR MIT)
//
// Burns a stated share of processors in the context of soft interrupts, before every program and whatever its priority:
// a timer for each processor, whose callback spins and arms it again. The kernel gives timers to GPL-compatible
// programs only.
//
// The callback spins for `most_ns` at most, and at least `rest_ns` lie between two on one processor, whosesoever they
// are. The kernel takes a timer away with the last reference to its map, which the process holds that loaded it: when
// this ends, in whatever way, the burning does. After `length_ns` it does in any case, also where the process was
// stopped.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

typedef __u32 u32;
typedef __u64 u64;

// Not in headers of Linux before 6.7 (BPF_F_TIMER_CPU_PIN), or not in this one.
#define PINNED (1 << 1)
#define CLOCK_MONOTONIC 1
#define EINVAL 22
// Looks at the clock: a few milliseconds, should it stand still.
#define MOST_LOOKS (1 << 17)
// ebpf/burn.rs asks for no processor beyond.
#define PROCESSORS 1024

// Written before the programs are loaded.
const volatile u64 slice_ns = 1;
const volatile u64 most_ns = 0;
const volatile u64 rest_ns = 1;
const volatile u64 length_ns = 0;
const volatile u32 slices = 1;

// What each slice of the course burns; after the last comes the first [ns].
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* as the program that loads it says */
	__type(key, u32);
	__type(value, u32);
} course SEC(".maps");

struct burner {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROCESSORS);
	__type(key, u32);
	__type(value, struct burner);
} burners SEC(".maps");

// What was burnt on behalf of a processor.
struct burnt {
	u64 ns; // from the beginning of each callback to its end
	u64 callbacks;
	u64 elsewhere; // callbacks on another processor than their own
};

struct burnt burnt[PROCESSORS] = {};

// When the last callback on a processor ended [ns of CLOCK_MONOTONIC].
u64 ended_ns[PROCESSORS] = {};

// When the first slice began; 0 before [ns of CLOCK_MONOTONIC].
u64 begun_ns = 0;

struct spell {
	u64 end_ns;
};

static int look(u32 number, struct spell *spell)
{
	return bpf_ktime_get_ns() >= spell->end_ns;
}

// On the processor that calls. Kernels that do not know how to pin a timer refuse the flag.
static __always_inline long arm(struct burner *burner, u64 wait_ns)
{
	long error = bpf_timer_start(&burner->timer, wait_ns, PINNED);

	return error == -EINVAL ? bpf_timer_start(&burner->timer, wait_ns, 0) : error;
}

static int burn(void *map, u32 *processor, struct burner *burner)
{
	u64 now = bpf_ktime_get_ns(), end;
	u64 slice = (now - begun_ns) / slice_ns;
	u64 next = begun_ns + (slice + 1) * slice_ns;
	u32 place = slice % slices, number = *processor;
	u32 *wanted = bpf_map_lookup_elem(&course, &place);
	u64 work_ns = wanted ? *wanted : 0;
	u32 here = bpf_get_smp_processor_id();

	if (number >= PROCESSORS || here >= PROCESSORS || now - begun_ns >= length_ns)
		return 0;
	// Another processor's callback was here: programs have their rest first.
	if (now < ended_ns[here] + rest_ns) {
		arm(burner, rest_ns);
		return 0;
	}
	if (work_ns > most_ns)
		work_ns = most_ns;
	if (work_ns) {
		struct spell spell = { .end_ns = now + work_ns };

		bpf_loop(MOST_LOOKS, look, &spell, 0);
	}
	burnt[number].callbacks++;
	if (here != number)
		burnt[number].elsewhere++;
	// A slice that began late is burnt whole, and the next one begins late as well or is left out.
	end = bpf_ktime_get_ns();
	ended_ns[here] = end;
	burnt[number].ns += end - now;
	if (next < end + rest_ns)
		next = end + rest_ns;
	arm(burner, next - end);
	return 0;
}

// Starts the timer of the processor that runs this.
SEC("syscall")
int begin(void *context)
{
	u32 processor = bpf_get_smp_processor_id();
	struct burner *burner = bpf_map_lookup_elem(&burners, &processor);
	long error;

	if (!burner)
		return -EINVAL;
	if (!begun_ns)
		begun_ns = bpf_ktime_get_ns();
	error = bpf_timer_init(&burner->timer, &burners, CLOCK_MONOTONIC);
	if (!error)
		error = bpf_timer_set_callback(&burner->timer, burn);
	return error ? error : arm(burner, slice_ns);
}

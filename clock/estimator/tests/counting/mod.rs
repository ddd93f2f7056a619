//! An allocator that counts what the own thread asks for, for the programs of tests that include it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

std::thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// What is allocated and not given back, bytes.
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn count(size: usize) {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    LIVE.set(LIVE.get().wrapping_add(size));
}

/// Another thread may give back what this one has allocated, hence the wrapping.
fn give_back(size: usize) {
    LIVE.set(LIVE.get().wrapping_sub(size));
}

// SAFETY: every call is handed on to the system's allocator as it came. The counters are plain words of the thread that
// need no destructor, so that counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        give_back(layout.size());
        // SAFETY: the caller keeps the contract of `realloc`, which is the same; the block came from the system's
        // allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`, which is the same; the block came from the system's
        // allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// How often `work` allocates, and what it yields.
pub fn allocations<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let before = ALLOCATIONS.get();
    let outcome = work();
    (ALLOCATIONS.get() - before, outcome)
}

/// What this thread has allocated and not given back, bytes.
pub fn live() -> usize {
    LIVE.get()
}

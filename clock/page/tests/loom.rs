//! The sequence lock under every interleaving and every reordering that the memory model allows:
//! `RUSTFLAGS="--cfg loom" cargo test -p ffclock-page --release --test loom`.
//!
//! The memory is a lock in miniature: the same code, two words a slot.
#![cfg(loom)]

use ffclock_page::words::{self, AtomicU64, Places};
use loom::sync::Arc;
use loom::sync::atomic::Ordering;
use loom::thread;

const WORDS: usize = 7;
const SMALL: Places = Places { latest: 0, slots: 1, stride: 3 };
/// What a publication of the lock in miniature holds: both words hold the sequence.
const OFFSETS: [usize; 2] = [1, 2];

type Memory = [AtomicU64; WORDS];

fn memory() -> Arc<Memory> {
    Arc::new(core::array::from_fn(|_| AtomicU64::new(0)))
}

fn publish(memory: &Memory, sequence: u64) {
    words::publish(memory, SMALL, sequence, &[sequence, sequence]);
}

/// One attempt; where it succeeds it must be one publication, whole. Gives its sequence.
fn read(memory: &Memory) -> Option<u64> {
    let (sequence, payload) = words::read(memory, SMALL, &OFFSETS).ok()?;
    assert_eq!(payload, [sequence, sequence], "words of two publications");
    Some(sequence)
}

/// What the threads of a program do: one sees a publication and says so, another reads it again on that word.
fn read_again(memory: &Memory, seen: &AtomicU64) -> Option<u64> {
    let sequence = seen.load(Ordering::Acquire);
    let payload = words::read_again(memory, SMALL, sequence, &OFFSETS).ok()?;
    assert_eq!(payload, [sequence, sequence], "words of another publication");
    Some(sequence)
}

/// The stores of a writer that is killed after `stores` of them, in the order of `words::publish`.
fn publish_and_die(memory: &Memory, sequence: u64, stores: usize) {
    let slot = 1 + ((sequence as usize >> 1) & 1) * 3;
    let steps = [(slot, sequence - 1), (slot + 1, sequence), (slot + 2, sequence), (slot, sequence)];
    for (place, value) in steps.into_iter().take(stores) {
        words::store(memory, place, value);
        words::order_stores();
    }
}

#[test]
fn no_read_is_torn_while_both_slots_are_overwritten() {
    loom::model(|| {
        let shared = memory();
        publish(&shared, 2);
        let writer = thread::spawn({
            let shared = shared.clone();
            move || {
                publish(&shared, 4);
                publish(&shared, 6);
            }
        });
        read(&shared);
        writer.join().unwrap();
        assert_eq!(read(&shared), Some(6));
    });
}

#[test]
fn a_read_during_one_publication_always_succeeds() {
    loom::model(|| {
        let shared = memory();
        publish(&shared, 2);
        let writer = thread::spawn({
            let shared = shared.clone();
            move || publish(&shared, 4)
        });
        assert!(matches!(read(&shared), Some(2 | 4)));
        writer.join().unwrap();
    });
}

#[test]
fn two_readers_never_see_a_torn_page() {
    loom::model(|| {
        let shared = memory();
        publish(&shared, 2);
        let reader = thread::spawn({
            let shared = shared.clone();
            move || read(&shared)
        });
        let writer = thread::spawn({
            let shared = shared.clone();
            move || publish(&shared, 4)
        });
        read(&shared);
        reader.join().unwrap();
        writer.join().unwrap();
    });
}

#[test]
fn a_publication_is_read_again_whole_or_not_at_all() {
    loom::model(|| {
        let shared = memory();
        publish(&shared, 2);
        let seen = Arc::new(AtomicU64::new(2));
        let writer = thread::spawn({
            let shared = shared.clone();
            move || {
                publish(&shared, 4);
                publish(&shared, 6);
            }
        });
        read_again(&shared, &seen);
        writer.join().unwrap();
        assert_eq!(read_again(&shared, &seen), None);
    });
}

#[test]
fn what_one_thread_has_seen_another_may_read_again() {
    loom::model(|| {
        let shared = memory();
        publish(&shared, 2);
        publish(&shared, 4);
        let seen = Arc::new(AtomicU64::new(4));
        let first = thread::spawn({
            let (shared, seen) = (shared.clone(), seen.clone());
            move || {
                if let Some(sequence) = read(&shared) {
                    seen.store(sequence, Ordering::Release);
                }
            }
        });
        let writer = thread::spawn({
            let shared = shared.clone();
            move || publish(&shared, 6)
        });
        read_again(&shared, &seen);
        first.join().unwrap();
        writer.join().unwrap();
    });
}

#[test]
fn a_writer_that_dies_anywhere_leaves_the_last_publication() {
    for stores in 0..=4 {
        loom::model(move || {
            let shared = memory();
            publish(&shared, 2);
            let writer = thread::spawn({
                let shared = shared.clone();
                move || publish_and_die(&shared, 4, stores)
            });
            assert_eq!(read(&shared), Some(2));
            writer.join().unwrap();
            assert_eq!(read(&shared), Some(2));
        });
    }
}

#[test]
fn the_successor_of_a_dead_writer_publishes_over_its_remains() {
    for stores in 0..=4 {
        loom::model(move || {
            let shared = memory();
            publish(&shared, 2);
            publish_and_die(&shared, 4, stores);
            let writer = thread::spawn({
                let shared = shared.clone();
                move || publish(&shared, words::next(words::latest(&*shared, SMALL)))
            });
            assert!(matches!(read(&shared), Some(2 | 4)));
            writer.join().unwrap();
            assert_eq!(read(&shared), Some(4));
        });
    }
}

/// The entry of a history in miniature, alone in the memory.
const ENTRY: usize = 0;

fn write_entry(memory: &Memory) {
    words::write_entry(memory, ENTRY, |sequence| [sequence, sequence]);
}

/// One attempt; where it succeeds it must be one content, whole.
fn read_entry(memory: &Memory) -> Option<u64> {
    let (sequence, payload) = words::read_entry(memory, ENTRY, &OFFSETS).ok()?;
    assert_eq!(payload, [sequence, sequence], "words of two contents");
    Some(sequence)
}

#[test]
fn an_entry_is_read_whole_or_not_at_all_while_it_is_written_twice() {
    loom::model(|| {
        let shared = memory();
        write_entry(&shared);
        let writer = thread::spawn({
            let shared = shared.clone();
            move || {
                write_entry(&shared);
                write_entry(&shared);
            }
        });
        assert!(matches!(read_entry(&shared), None | Some(2 | 4 | 6)));
        writer.join().unwrap();
        assert_eq!(read_entry(&shared), Some(6));
    });
}

/// The stores of a writer that is killed after `stores` of them, in the order of `words::write_entry`.
fn write_entry_and_die(memory: &Memory, stores: usize) {
    for (place, value) in [(0, 3), (1, 4), (2, 4)].into_iter().take(stores) {
        words::store(memory, place, value);
        words::order_stores();
    }
}

#[test]
fn a_writer_that_dies_in_an_entry_leaves_it_void_and_its_successor_writes_it_again() {
    for stores in 0..=3 {
        loom::model(move || {
            let shared = memory();
            write_entry(&shared);
            write_entry_and_die(&shared, stores);
            assert_eq!(read_entry(&shared), if stores == 0 { Some(2) } else { None });
            let writer = thread::spawn({
                let shared = shared.clone();
                move || write_entry(&shared)
            });
            assert!(matches!(read_entry(&shared), None | Some(2 | 4)));
            writer.join().unwrap();
            assert_eq!(read_entry(&shared), Some(4));
        });
    }
}

#[test]
fn a_void_entry_is_not_read_under_its_old_sequence() {
    loom::model(|| {
        let shared = memory();
        write_entry(&shared);
        let writer = thread::spawn({
            let shared = shared.clone();
            move || {
                words::void_entry(&*shared, ENTRY);
                write_entry(&shared);
            }
        });
        assert!(matches!(read_entry(&shared), None | Some(2 | 4)));
        writer.join().unwrap();
    });
}

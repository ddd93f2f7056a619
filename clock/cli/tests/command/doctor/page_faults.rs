//! Faults of the page and of what stands beside it.

use super::{Listens, Seed, SeededHost};
use crate::common::publication;
use ffclock_counter::CounterId;
use ffclock_units::{ModuleCounter, Status, Ticks};
use std::fs;

/// Changes the bytes of the page.
fn damage(host: &SeededHost, change: impl FnOnce(&mut [u8])) {
    let mut bytes = fs::read(host.place.page()).unwrap();
    change(&mut bytes);
    fs::write(host.place.page(), bytes).unwrap();
}

pub(super) const SEEDS: &[Seed] = &[
    Seed { sow: |host| fs::remove_file(host.place.page()).unwrap(), finds: &["page-missing"] },
    Seed { sow: |host| host.write("page", "root:x:0:0:root\n"), finds: &["page-foreign"] },
    Seed { sow: |host| damage(host, |bytes| bytes[0] = b'x'), finds: &["page-foreign"] },
    Seed {
        sow: |host| {
            fs::remove_file(host.place.page()).unwrap();
            fs::File::create(host.place.page()).unwrap().set_len(4096).unwrap();
            host.mode("page", 0o644);
        },
        finds: &["page-hole"],
    },
    Seed { sow: |host| damage(host, |bytes| bytes[8] = 99), finds: &["page-version"] },
    Seed { sow: |host| damage(host, |bytes| bytes[256..].fill(0xa5)), finds: &["page-damaged"] },
    Seed {
        sow: |host| {
            let mut publication = publication(Status::Synchronised);
            publication.counter_id = CounterId::Module(ModuleCounter::Hpet);
            host.place.publish_by(&publication);
        },
        finds: &["page-counter"],
    },
    Seed {
        sow: |host| {
            let mut publication = publication(Status::Synchronised);
            publication.valid_until = publication.estimate.counter + Ticks::from_raw(1);
            host.place.publish_by(&publication);
        },
        finds: &["page-stale"],
    },
    Seed { sow: |host| host.place.publish_nothing(), finds: &["clock-unset"] },
    // While the daemon makes it.
    Seed { sow: |host| damage(host, |bytes| bytes.fill(0)), finds: &["clock-unset"] },
    Seed { sow: |host| host.mode("page", 0o666), finds: &["page-writable"] },
    Seed { sow: |host| host.mode(".", 0o775), finds: &["page-writable"] },
    Seed { sow: |host| host.mode("page", 0o640), finds: &["page-hidden"] },
    Seed { sow: |host| fs::remove_file(host.place.file("page.history")).unwrap(), finds: &["history-missing"] },
    Seed { sow: |host| host.report["page"] = "/nowhere/page".into(), finds: &["page-other"] },
    // A daemon that never ran.
    Seed {
        sow: |host| {
            fs::remove_file(host.place.page()).unwrap();
            host.listens = Listens::Absent;
        },
        finds: &["page-missing", "daemon-absent"],
    },
    // The boot: as after a restart of the machine with a page on a disk. The check word of the header goes with it.
    Seed {
        sow: |host| {
            let bytes = {
                let memory = ffclock_page::PageMemory::new();
                let boot = ffclock_page::BootId::parse("00000000-0000-4000-8000-000000000001");
                let mut writer = ffclock_page::Writer::open(memory, boot);
                writer.publish(&publication(Status::Synchronised));
                let words = writer.memory().as_ref().iter();
                let load = |word: &std::sync::atomic::AtomicU64| word.load(std::sync::atomic::Ordering::Relaxed);
                words.flat_map(|word| load(word).to_ne_bytes()).collect::<Vec<u8>>()
            };
            fs::write(host.place.page(), bytes).unwrap();
        },
        finds: &["page-other-boot"],
    },
];

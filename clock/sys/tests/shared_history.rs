//! The file of the history: shared, kept over restarts, refused where it is not what it should be.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic, helpers of tests too")]

use ffclock_sys::{PageFileError, SharedHistory, SharedHistoryReader, history_beside};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// A path in a directory of its own for each test.
fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("ffclock-history-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory.join("page.history")
}

fn remove(path: &Path) {
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn a_history_lies_beside_its_page() {
    assert_eq!(history_beside(Path::new("/run/ffclock/page")), Path::new("/run/ffclock/page.history"));
}

#[test]
fn what_the_writer_stores_the_reader_loads_and_the_next_writer_finds() {
    let path = scratch("shared");
    let history = SharedHistory::create(&path).unwrap();
    let reader = SharedHistoryReader::open(&path).unwrap();
    history.as_ref()[98_815].store(43, Ordering::Release);
    assert_eq!(reader.words()[98_815].load(Ordering::Acquire), 43);
    let inode = fs::metadata(&path).unwrap().ino();
    assert!(matches!(SharedHistory::create(&path), Err(PageFileError::Busy(_))));
    assert!(history.is_at(&path) && !history.is_at(&path.with_extension("other")));
    drop(history);
    let next = SharedHistory::create(&path).unwrap();
    assert_eq!(next.as_ref()[98_815].load(Ordering::Relaxed), 43);
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    remove(&path);
}

#[test]
fn a_file_with_a_hole_or_of_another_size_is_refused_by_readers_and_replaced_by_the_writer() {
    let path = scratch("hole");
    for (begin, length) in [("", 0), ("ffchist\0", 4096), ("", 98_816 * 8)] {
        fs::write(&path, begin).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        assert!(SharedHistoryReader::open(&path).is_err(), "{length}");
        drop(SharedHistory::create(&path).unwrap());
        assert!(SharedHistoryReader::open(&path).is_ok(), "{length}");
    }
    fs::write(&path, "a letter to a friend").unwrap();
    assert!(matches!(SharedHistory::create(&path), Err(PageFileError::Foreign { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"a letter to a friend");
    fs::remove_file(&path).unwrap();
    assert!(SharedHistoryReader::open(&path).is_err(), "missing");
    fs::create_dir(&path).unwrap();
    assert!(SharedHistoryReader::open(&path).is_err() && SharedHistory::create(&path).is_err(), "a directory");
    remove(&path);
}

//! The file of the page: shared, kept over restarts, refused where it is not what it should be.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic, helpers of tests too")]

use ffclock_sys::{PageFileError, SharedPage, SharedPageReader};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// A directory of its own for each test, gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ffclock-page-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn path(&self) -> PathBuf {
        self.0.join("run/page")
    }

    /// Something else at the place of the page.
    fn put(&self, bytes: &[u8]) -> PathBuf {
        fs::create_dir_all(self.path().parent().unwrap()).unwrap();
        fs::write(self.path(), bytes).unwrap();
        self.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn what_the_writer_stores_the_reader_loads() {
    let scratch = Scratch::new("shared");
    let page = SharedPage::create(&scratch.path()).unwrap();
    let reader = SharedPageReader::open(&scratch.path()).unwrap();
    assert!(reader.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
    page.words()[7].store(42, Ordering::Release);
    page.words()[511].store(43, Ordering::Release);
    assert_eq!(reader.words()[7].load(Ordering::Acquire), 42);
    assert_eq!(reader.words()[511].load(Ordering::Acquire), 43);
}

#[test]
fn everybody_may_read_and_only_the_owner_write() {
    let scratch = Scratch::new("modes");
    let _page = SharedPage::create(&scratch.path()).unwrap();
    assert_eq!(mode(&scratch.path()), 0o644);
    assert_eq!(mode(scratch.path().parent().unwrap()) & 0o755, 0o755);
    assert_eq!(fs::read_dir(scratch.path().parent().unwrap()).unwrap().count(), 1, "nothing is left beside the page");
}

#[test]
fn a_restarted_writer_goes_on_in_the_same_memory() {
    let scratch = Scratch::new("restart");
    let first = SharedPage::create(&scratch.path()).unwrap();
    first.words()[0].store(1, Ordering::Relaxed);
    let reader = SharedPageReader::open(&scratch.path()).unwrap();
    let inode = fs::metadata(scratch.path()).unwrap().ino();
    drop(first);
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o600)).unwrap();
    let second = SharedPage::create(&scratch.path()).unwrap();
    assert_eq!(second.words()[0].load(Ordering::Relaxed), 1);
    second.words()[0].store(2, Ordering::Relaxed);
    assert_eq!(reader.words()[0].load(Ordering::Relaxed), 2);
    assert_eq!(fs::metadata(scratch.path()).unwrap().ino(), inode);
    assert_eq!(mode(&scratch.path()), 0o644);
}

#[test]
fn two_writers_are_one_too_many() {
    let scratch = Scratch::new("busy");
    let page = SharedPage::create(&scratch.path()).unwrap();
    assert!(matches!(SharedPage::create(&scratch.path()), Err(PageFileError::Busy(_))));
    drop(page);
    assert!(SharedPage::create(&scratch.path()).is_ok());
}

#[test]
fn a_file_of_another_size_is_refused_by_readers_and_replaced_by_the_writer() {
    let scratch = Scratch::new("size");
    for size in [0, 4095, 4097] {
        let path = scratch.put(&vec![1; size]);
        let Err(PageFileError::Size { found, .. }) = SharedPageReader::open(&path) else {
            panic!("{size} bytes mapped")
        };
        assert_eq!(found, size as u64);
        let page = SharedPage::create(&path).unwrap();
        assert!(page.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
        assert!(SharedPageReader::open(&path).is_ok());
    }
}

#[test]
fn what_is_missing_is_reported_so() {
    let scratch = Scratch::new("missing");
    assert!(matches!(SharedPageReader::open(&scratch.path()), Err(PageFileError::Missing(_))));
    let text = SharedPageReader::open(&scratch.path()).unwrap_err().to_string();
    assert!(text.contains("does not exist"), "{text}");
}

#[test]
fn only_regular_files_are_pages() {
    let scratch = Scratch::new("kinds");
    fs::create_dir_all(scratch.path()).unwrap();
    assert!(matches!(SharedPageReader::open(&scratch.path()), Err(PageFileError::NotAFile(_))));
    assert!(matches!(SharedPage::create(&scratch.path()), Err(PageFileError::NotAFile(_))));
    assert!(matches!(SharedPageReader::open(Path::new("/dev/zero")), Err(PageFileError::NotAFile(_))));
}

#[test]
fn the_writer_follows_no_link_and_the_reader_does() {
    let scratch = Scratch::new("link");
    let target = scratch.0.join("target");
    File::create(&target).unwrap().set_len(4096).unwrap();
    fs::create_dir_all(scratch.path().parent().unwrap()).unwrap();
    symlink(&target, scratch.path()).unwrap();
    assert!(matches!(SharedPage::create(&scratch.path()), Err(PageFileError::NotAFile(_))));
    assert!(SharedPageReader::open(&scratch.path()).is_ok());
}

#[test]
fn what_may_not_be_opened_is_reported_so() {
    let scratch = Scratch::new("forbidden");
    let path = scratch.put(&[0; 4096]);
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    match SharedPageReader::open(&path) {
        Err(PageFileError::Permission(found)) => assert_eq!(found, path),
        // The superuser may open everything.
        Ok(_) => assert_eq!(fs::metadata("/proc/self").unwrap().uid(), 0),
        Err(other) => panic!("{other}"),
    }
}

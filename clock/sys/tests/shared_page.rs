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
    first.words()[1].store(1, Ordering::Relaxed);
    let reader = SharedPageReader::open(&scratch.path()).unwrap();
    let inode = fs::metadata(scratch.path()).unwrap().ino();
    drop(first);
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o600)).unwrap();
    let second = SharedPage::create(&scratch.path()).unwrap();
    assert_eq!(second.words()[1].load(Ordering::Relaxed), 1);
    second.words()[1].store(2, Ordering::Relaxed);
    assert_eq!(reader.words()[1].load(Ordering::Relaxed), 2);
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
        let mut old = vec![1; size];
        old.iter_mut().zip(b"ffclock\0").for_each(|(byte, mark)| *byte = *mark);
        let path = scratch.put(&old);
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
fn a_file_that_is_no_page_is_never_replaced() {
    let scratch = Scratch::new("foreign");
    for text in ["precious", "ffclock", "ffclock keeps time\n"] {
        let path = scratch.put(text.as_bytes());
        assert!(matches!(SharedPage::create(&path), Err(PageFileError::Foreign { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

/// Of the page's own size, too: content and rights stay.
#[test]
fn a_foreign_file_of_the_right_size_is_left_as_it_is() {
    let scratch = Scratch::new("foreign-size");
    let path = scratch.put(&[0xa5; 4096]);
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    assert!(matches!(SharedPage::create(&path), Err(PageFileError::Foreign { .. })));
    assert_eq!(fs::read(&path).unwrap(), [0xa5; 4096]);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_hole_is_not_mapped_by_readers_and_filled_by_the_writer() {
    let scratch = Scratch::new("hole");
    let path = scratch.put(b"");
    File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
    assert!(matches!(SharedPageReader::open(&path), Err(PageFileError::Hole(_))));
    drop(SharedPage::create(&path).unwrap());
    assert!(fs::metadata(&path).unwrap().blocks() > 0);
    assert!(SharedPageReader::open(&path).is_ok());
}

#[test]
fn a_page_that_was_removed_replaced_or_cut_off_is_noticed() {
    let scratch = Scratch::new("place");
    let path = scratch.path();
    let page = SharedPage::create(&path).unwrap();
    assert!(page.is_at(&path));
    File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    assert!(!page.is_at(&path));
    let page = SharedPage::create(&path).unwrap();
    assert!(page.is_at(&path), "made again while the old one is still held");
    fs::write(path.with_extension("other"), [0; 4096]).unwrap();
    fs::rename(path.with_extension("other"), &path).unwrap();
    assert!(!page.is_at(&path));
    fs::remove_file(&path).unwrap();
    assert!(!page.is_at(&path));
    assert!(SharedPage::create(&path).unwrap().is_at(&path));
}

/// In a mount namespace of the test's own, run by this same test binary: a full file system, in which a page with a
/// hole would end the process by SIGBUS.
#[test]
fn a_full_file_system_is_an_error_and_not_the_end() {
    const PLACE: &str = "FFCLOCK_TEST_FULL";
    if let Some(directory) = std::env::var_os(PLACE) {
        let directory = Path::new(&directory);
        assert!(matches!(SharedPage::create(&directory.join("new")), Err(PageFileError::NoSpace { .. })));
        assert!(matches!(SharedPage::create(&directory.join("hole")), Err(PageFileError::NoSpace { .. })));
        assert!(matches!(SharedPageReader::open(&directory.join("hole")), Err(PageFileError::Hole(_))));
        assert_eq!(fs::read_dir(directory).unwrap().count(), 2, "nothing is left behind");
        return;
    }
    let scratch = Scratch::new("full");
    let script = "mount -t tmpfs -o size=8k none \"$0\" || exit 77
        truncate -s 4096 \"$0/hole\"
        dd if=/dev/zero of=\"$0/fill\" bs=4096 count=2 2>/dev/null
        exec \"$1\" --exact a_full_file_system_is_an_error_and_not_the_end";
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(&scratch.0)
        .arg(std::env::current_exe().unwrap())
        .env(PLACE, &scratch.0)
        .output();
    match output {
        Ok(output) if output.status.success() => {}
        Ok(output) if output.status.code() == Some(77) || output.stderr.starts_with(b"unshare:") => {
            println!("SKIP: no mount of the test's own: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(output) => panic!("{:?} {}", output.status, String::from_utf8_lossy(&output.stdout)),
        Err(error) => println!("SKIP: unshare(1) is missing: {error}"),
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
    fs::write(&target, [0; 4096]).unwrap();
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

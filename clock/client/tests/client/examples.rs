//! The programs of examples/rust and of examples/c, as their readers run them; those of python/examples are run by
//! python/tests.

use crate::c;
use crate::c_api::build;
use crate::common::{Directory, publication, writer};
use ffclock_units::Bound;
use ffclock_units::{Span, Status};
use std::path::Path;
use std::process::Command;

/// What the example prints. Cargo builds examples with the tests of the whole crate.
fn run(name: &str, arguments: &[&str]) -> String {
    let test = std::env::current_exe().expect("the path of this test");
    let program = test.parent().and_then(Path::parent).expect("the directory of the build").join("examples").join(name);
    assert!(program.exists(), "run all tests of this crate, or `cargo build -p ffclock-client --examples`");
    said(&program, arguments)
}

fn said(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("the example just built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The verdict of `program`, which is any of the three, on two ranges that any of them has printed.
fn compared(program: impl Fn(&[&str]) -> String, one: &str, other: &str) -> String {
    let words: Vec<&str> =
        ["compare"].into_iter().chain(one.split_whitespace()).chain(other.split_whitespace()).collect();
    program(&words)
}

fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let found = line.split([' ', ',', '{', '}', '\n']).find_map(|part| part.strip_prefix(name));
    found.unwrap_or_else(|| panic!("{name} in {line}"))
}

#[test]
fn examples_do_what_they_say() {
    let directory = Directory::new();
    let path = directory.join("page");
    let mut writer = writer(&path);
    writer.publish(&publication());
    let page = path.to_str().expect("a name in UTF-8");

    assert!(run("commit_wait", &[page]).starts_with("2 commits in order"));

    let span = run("span_attributes", &[page]);
    let number = |name: &str| field(&span, name).parse::<i128>().expect("a number");
    assert!(number("\"end\":") >= number("\"start\":"));
    let bound = number("\"clock.start.bound_ns\":");
    assert!((50_000..1_000_000).contains(&bound), "{span}");
    assert!(number("\"clock.duration_ns\":") > 0 && span.contains("\"clock.status\":\"synchronised\""), "{span}");

    let records = run("containment", &[page]);
    assert_eq!(records.lines().count(), 3);
    assert!(records.lines().all(|line| field(line, "within=") == "shown" && field(line, "epoch=") == "1"), "{records}");

    let (first, second) = (run("order_of_hosts", &["event", page]), run("order_of_hosts", &["event", page]));
    let compare = |one: &str, other: &str| compared(|words| run("order_of_hosts", words), one, other);
    // Processes start in some milliseconds, and the bound is 50 us.
    assert_eq!(compare(&first, &second), "the first was first\n");
    assert_eq!(compare(&second, &first), "the second was first\n");
    assert_eq!(compare(&first, &first), "it cannot be known\n");

    let mut vague = publication();
    vague.estimate.bound = Bound::of(Span::from_millis(1));
    writer.publish(&vague);
    let records = run("containment", &[page]);
    assert!(records.lines().all(|line| field(line, "within=") == "not-shown"), "{records}");
}

/// Ranges of programs in C and in Rust are compared by both, with the same verdict.
#[test]
fn examples_in_c_do_what_those_in_rust_do() {
    let directory = Directory::new();
    let path = directory.join("page");
    let mut writer = writer(&path);
    writer.publish(&publication());
    let page = path.to_str().expect("a name in UTF-8");

    let commit_wait = build(&directory, "../../examples/c/commit_wait.c");
    assert!(said(&commit_wait, &[page]).starts_with("2 commits in order, in "));

    let order = build(&directory, "../../examples/c/order_of_hosts.c");
    let first = said(&order, &["event", page]);
    let second = run("order_of_hosts", &["event", page]);
    let third = said(&order, &["event", page]);
    for (one, other, verdict) in [
        (&first, &second, "the first was first\n"),
        (&third, &second, "the second was first\n"),
        (&second, &second, "it cannot be known\n"),
    ] {
        assert_eq!(compared(|words| said(&order, words), one, other), verdict);
        assert_eq!(compared(|words| run("order_of_hosts", words), one, other), verdict);
    }
    // The width of a range is twice the bound, which is 50 us and grows.
    let ends: Vec<i64> = first.split_whitespace().map(|end| end.parse().expect("a number")).collect();
    assert!((100_000..1_000_000).contains(&(ends[1] - ends[0])), "{first}");

    writer.retire(Status::Unsynchronised);
    let refused = c::run(&commit_wait, &path);
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{refused:?}");
}

//! The programs of examples/rust, as their readers run them.

use crate::common::{Directory, publication, writer};
use ffclock_units::Bound;
use ffclock_units::Span;
use std::path::Path;
use std::process::Command;

/// What the example prints. Cargo builds examples with the tests of the whole crate.
fn run(name: &str, arguments: &[&str]) -> String {
    let test = std::env::current_exe().expect("the path of this test");
    let program = test.parent().and_then(Path::parent).expect("the directory of the build").join("examples").join(name);
    assert!(program.exists(), "run all tests of this crate, or `cargo build -p ffclock-client --examples`");
    let output = Command::new(program).args(arguments).output().expect("the example just built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
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
    let compare = |one: &str, other: &str| {
        let words: Vec<&str> =
            ["compare"].into_iter().chain(one.split_whitespace()).chain(other.split_whitespace()).collect();
        run("order_of_hosts", &words)
    };
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

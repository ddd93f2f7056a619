//! The alert rules and the board name only metrics that the daemon serves, and Prometheus's own tool accepts them.

use ffclock_control::metrics;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(packaging().join(name)).expect("a file of the repository")
}

/// The metrics that an expression names.
fn named(expression: &str) -> Vec<&str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("ffclock_")).collect()
}

fn expressions_of_board() -> Vec<String> {
    let board: Value = serde_json::from_str(&text("grafana/ffclock.json")).expect("the board is JSON");
    let panels = board["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    targets.map(|target| target["expr"].as_str().expect("an expression").to_owned()).collect()
}

fn expressions_of_rules() -> Vec<String> {
    let rules = text("prometheus/ffclock.rules.yml");
    rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).map(str::to_owned).collect()
}

/// promtool of this machine, or the one that `make setup` unpacked.
fn promtool() -> Option<PathBuf> {
    let unpacked = packaging().join("../target/peers/prometheus/usr/bin/promtool");
    [unpacked, PathBuf::from("promtool")]
        .into_iter()
        .find(|program| Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success()))
}

fn run(promtool: &Path, arguments: &[&str]) {
    let output = Command::new(promtool).args(arguments).output().expect("promtool starts");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

/// Every family that ffclockd or ffclock-serve serves, with one sample, in the older form that promtool's lint reads.
fn described() -> String {
    let families = metrics::ALL.iter().chain(metrics::serve::ALL);
    let described = families.map(|family| {
        let (name, kind) = (family.sample(), family.kind.name());
        format!("# HELP {name} {}\n# TYPE {name} {kind}\n{name} 1\n", family.help)
    });
    described.collect()
}

/// What promtool has against the names.
fn lint(promtool: &Path, text: &str) -> String {
    let mut child = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads all");
    String::from_utf8(child.wait_with_output().expect("it ends").stderr).expect("text")
}

#[test]
fn only_metrics_that_are_served_are_named() {
    let served: Vec<String> = metrics::ALL.iter().map(metrics::Family::sample).collect();
    let expressions = [expressions_of_rules(), expressions_of_board()].concat();
    assert!(expressions.len() >= 10 + 12, "{}", expressions.len());
    for expression in &expressions {
        for name in named(expression) {
            assert!(served.iter().any(|sample| sample == name), "`{name}` in `{expression}` is no metric");
        }
    }
}

#[test]
fn promtool_accepts_rules_and_board() {
    let Some(promtool) = promtool() else { return println!("SKIP: promtool is not here (make setup unpacks it)") };
    let rules = packaging().join("prometheus/ffclock.rules.yml");
    run(&promtool, &["check", "rules", rules.to_str().expect("a path of text")]);
    let tests = packaging().join("prometheus/ffclock.rules.test.yml");
    run(&promtool, &["test", "rules", tests.to_str().expect("a path of text")]);
    assert_eq!(lint(&promtool, &described()), "", "names that Prometheus advises against");
    // The board's expressions, as the rules that promtool understands.
    let records = expressions_of_board().into_iter().enumerate().map(|(number, expression)| {
        let expression = Value::from(expression.replace("$instance", ".+"));
        format!("      - record: board:panel:{number}\n        expr: {expression}\n")
    });
    let board = format!("groups:\n  - name: board\n    rules:\n{}", records.collect::<String>());
    let file = std::env::temp_dir().join(format!("ffclock-board-{}.yml", std::process::id()));
    std::fs::write(&file, board).expect("a temporary file");
    run(&promtool, &["check", "rules", file.to_str().expect("a path of text")]);
    std::fs::remove_file(file).expect("it is there");
}

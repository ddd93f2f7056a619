//! Pictures by the Python package.

use crate::Failure;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What is drawn where.
pub(crate) struct Drawing<'a> {
    /// The module of the package that draws, and takes JSON from its standard input.
    pub(crate) module: &'a str,
    /// The interpreter.
    pub(crate) python: &'a Path,
    /// Its --output.
    pub(crate) output: &'a Path,
}

/// Hands `json` over, and returns what the module prints; what it complains of goes into the failure.
pub(crate) fn draw(drawing: &Drawing<'_>, title: &str, json: &str) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::from(format!("cannot run {}: {error}", drawing.python.display()));
    let mut python = Command::new(drawing.python)
        .args(["-m", drawing.module, "-", "--title", title, "--output"])
        .arg(drawing.output)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // It may end before it has read everything; then its own message and exit code say why.
    let written = python.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(json.as_bytes()));
    let ended = python.wait_with_output().map_err(failed)?;
    if !ended.status.success() {
        return Err(Failure::from(complaint(drawing, &String::from_utf8_lossy(&ended.stderr))));
    }
    written.map_err(failed)?;
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

/// Why nothing was drawn: without the package Python has only its own words for it.
fn complaint(drawing: &Drawing<'_>, said: &str) -> String {
    let said = said.trim_end();
    if said.contains("No module named") {
        return format!(
            "nothing was drawn: {} does not have the Python package: pip install 'ffclock[analysis]'",
            drawing.python.display()
        );
    }
    format!("nothing was drawn: {said}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Draws with an interpreter that says this and fails.
    fn complained(said: &str) -> String {
        let name = format!("ffclock-drawing-{}-{}", std::process::id(), said.len());
        let python = std::env::temp_dir().join(name);
        std::fs::write(&python, format!("#!/bin/sh\ncat > /dev/null\necho \"{said}\" >&2\nexit 1\n")).unwrap();
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
        let drawing = Drawing { module: "ffclock.theta_report", python: &python, output: Path::new("out") };
        let failure = draw(&drawing, "title", "{}").unwrap_err();
        let _ = std::fs::remove_file(&python);
        failure.message
    }

    #[test]
    fn without_the_package_only_what_helps_is_said() {
        let message = complained("/usr/bin/python3: No module named ffclock");
        assert!(message.contains("pip install 'ffclock[analysis]'") && !message.contains("No module"), "{message}");
    }

    #[test]
    fn the_complaint_of_the_package_is_passed_on() {
        let message = complained("ffclock.theta_report: the disk is full");
        assert_eq!(message, "nothing was drawn: ffclock.theta_report: the disk is full");
    }
}

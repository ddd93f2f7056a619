//! Gathers the figures of benchmarks: JSON lines on standard input become a table on standard output and an array in a
//! file.
//!
//! `tools/bench` lists the programs that measure. Each prints one line `{"name": ..., "value": ..., "unit": ...,
//! "against": ..., "ratio": ..., "goal": ..., "met": ...}` per figure; its other output is passed on.

use serde::{Deserialize, Serialize};
use std::io::BufRead;
use std::path::Path;

/// One measured figure.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    name: String,
    value: f64,
    unit: String,
    /// The other candidate of the same run, and its value.
    against: String,
    ratio: Option<f64>,
    /// Missing where a figure is given for comparison only.
    goal: Option<String>,
    met: Option<bool>,
}

/// Reads figures from standard input until its end and writes them to `output`.
///
/// # Errors
/// A malformed figure, no figure at all, or a file that cannot be written.
pub fn gather(output: &Path) -> Result<String, String> {
    let mut figures = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| format!("standard input: {error}"))?;
        match parse(&line) {
            Some(figure) => figures.push(figure?),
            None => eprintln!("{line}"),
        }
    }
    if figures.is_empty() {
        return Err("nothing was measured".to_owned());
    }
    let json = serde_json::to_string_pretty(&figures).map_err(|error| error.to_string())?;
    let directory = output.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    std::fs::write(output, json + "\n").map_err(|error| format!("{}: {error}", output.display()))?;
    Ok(format!("{}\n{}", table(&figures), summary(&figures)))
}

/// `None` for a line that does not begin like a figure.
fn parse(line: &str) -> Option<Result<Figure, String>> {
    line.starts_with("{\"name\"")
        .then(|| serde_json::from_str(line).map_err(|error| format!("{line}\nis no figure: {error}")))
}

fn summary(figures: &[Figure]) -> String {
    let judged: Vec<bool> = figures.iter().filter_map(|figure| figure.met).collect();
    let met = judged.iter().filter(|&&met| met).count();
    format!("{met} of {} goals met; {} further figures for comparison", judged.len(), figures.len() - judged.len())
}

/// Columns as wide as their widest cell.
fn table(figures: &[Figure]) -> String {
    let head = ["figure", "value", "against", "ratio", "goal", "met"].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(figures.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    let line = |row: &[String; 6]| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn row(figure: &Figure) -> [String; 6] {
    let Figure { name, value, unit, against, ratio, goal, met } = figure;
    let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"));
    [
        name.clone(),
        format!("{value} {unit}"),
        against.clone(),
        ratio,
        goal.clone().unwrap_or_default(),
        met.map_or("", |met| if met { "yes" } else { "NO" }).to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"name":"now","value":17.5,"unit":"ns","against":"clock_gettime: 22.1","ratio":0.79,"goal":"ratio <= 0.8","met":true}"#;

    #[test]
    fn figures_are_distinguished_from_other_lines_and_broken_ones_refused() {
        assert!(parse(LINE).unwrap().is_ok());
        assert!(parse("Running benches/reading.rs").is_none());
        assert!(parse(r#"{"name":"now","value":17.5}"#).unwrap().is_err());
        assert!(parse(&LINE.replace("\"met\"", "\"reached\"")).unwrap().is_err());
    }

    #[test]
    fn the_table_is_aligned_and_shows_missed_goals() {
        let missed = LINE.replace("true", "false").replace("\"now\"", "\"a longer name\"");
        let figures = [parse(LINE).unwrap().unwrap(), parse(&missed).unwrap().unwrap()];
        let text = table(&figures);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].find("value"), lines[2].find("17.5 ns"));
        assert!(lines[1].ends_with("yes") && lines[2].ends_with("NO"));
        assert_eq!(summary(&figures), "1 of 2 goals met; 0 further figures for comparison");
    }

    #[test]
    fn a_figure_without_a_goal_is_shown_and_not_counted() {
        let line = LINE.replace("\"ratio <= 0.8\"", "null").replace("true", "null");
        let figures = [parse(&line).unwrap().unwrap()];
        assert!(!table(&figures).contains("NO"));
        assert_eq!(summary(&figures), "0 of 0 goals met; 1 further figures for comparison");
    }
}

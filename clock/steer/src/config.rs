//! The configuration of the follower: TOML text in; a [`SteerConfig`], or a list of all problems, out.

use crate::options::SteerConfig;
use ffclock_service::{ConfigError, ConfigText, Described};
use ffclock_units::OptionDoc;

const DESCRIBED: Described = Described {
    options: SteerConfig::describe,
    instead_of: |name| (name == "server").then_some(": whom to follow is in the configuration of ffclockd"),
    no_value: "every line is KEY = VALUE",
    twice: |_| None,
};

/// Shows every option with the section it belongs to: "" for the top.
pub fn describe_all(visit: &mut dyn FnMut(&str, OptionDoc<'_>)) {
    SteerConfig::describe(&mut |doc| visit("", doc));
}

/// Reads a configuration.
///
/// # Errors
/// All problems found, each with its line.
pub fn parse(text: &str) -> Result<SteerConfig, ConfigError> {
    let mut file = ConfigText::new(text, DESCRIBED);
    let config = read(&mut file);
    file.end(config)
}

fn read(file: &mut ConfigText<'_>) -> Option<SteerConfig> {
    let mut config = SteerConfig::default();
    let mut last = 0;
    for (key, value) in &file.table()? {
        let (at, name) = (key.span().start, key.get_ref().as_ref());
        file.apply(at, name, value, &mut |name, text| config.set(name, text));
        if matches!(name, "poll" | "time_constant") {
            last = last.max(at);
        }
    }
    if config.time_constant < config.poll + config.poll {
        file.problem(last, "time_constant: less than two polls, so that the clock would swing".to_owned());
    }
    Some(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::OnContention;
    use ffclock_units::Span;

    #[test]
    fn a_configuration_is_read_and_every_mistake_has_its_line() {
        let config = parse("poll = \"500 ms\"\nstep_at_start = \"1 s\"\ncontention = \"continue\"\n").unwrap();
        assert_eq!((config.poll, config.contention), (Span::from_millis(500), OnContention::Continue));
        assert!(config.law().step_beyond.is_some());
        let wrong =
            "pol = \"1 s\"\nslew_max = \"501 ppm\"\nstep_at_start = \"-1 s\"\nleap = \"step\"\npoll = \"8 s\"\n";
        let problems = parse(wrong).unwrap_err().problems;
        let found: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(found, [1, 2, 3, 4, 5], "{problems:?}");
        assert!(problems[0].message.contains("is `poll` meant?"), "{problems:?}");
    }

    /// Every block of TOML in the documents, and the file that is shipped, as it is and with all that it shows.
    #[test]
    fn what_the_documents_show_is_accepted() {
        let documents = [include_str!("../../../docs/steer-configuration.md"), include_str!("../../../docs/steer.md")];
        let blocks: Vec<&str> = documents
            .iter()
            .flat_map(|document| document.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()))
            .collect();
        assert!(blocks.len() >= 2);
        for text in blocks.into_iter().chain([include_str!("../../../packaging/steer.toml")]) {
            let uncommented: String = text
                .lines()
                .map(|line| line.strip_prefix('#').filter(|key| !key.starts_with(' ')).unwrap_or(line))
                .map(|line| line.to_owned() + "\n")
                .collect();
            for text in [text, &uncommented] {
                assert_eq!(parse(text).map(|_| ()), Ok(()), "{text}");
            }
        }
    }
}

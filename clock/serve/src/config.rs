//! The configuration of the server: TOML text in; a [`ServeSettings`], or a list of all problems, out.

use crate::nts::NtsConfig;
use crate::options::{Addresses, LISTS, ServeConfig};
use crate::ptp::PtpConfig;
use ffclock_service::{ConfigError, ConfigText, DeTable, DeValue, Described};
use ffclock_units::{OptionDoc, OptionError, Span};
use std::net::SocketAddr;

const DESCRIBED: Described = Described {
    options: |visit| describe_all(&mut |_, doc| visit(doc)),
    instead_of: |name| (name == "server").then_some(": whom to follow is in the configuration of ffclockd"),
    no_value: "every line is KEY = VALUE",
    twice: |_| None,
};

/// Shows every option with the section it belongs to: "" for the top.
pub fn describe_all(visit: &mut dyn FnMut(&str, OptionDoc<'_>)) {
    ServeConfig::describe(&mut |doc| visit("", doc));
    NtsConfig::describe(&mut |doc| visit("nts", doc));
    PtpConfig::describe(&mut |doc| visit("ptp", doc));
}

/// The whole configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServeSettings {
    /// The keys at the top of the file.
    pub serve: ServeConfig,
    /// The table `[nts]`.
    pub nts: NtsConfig,
    /// The table `[ptp]`.
    pub ptp: PtpConfig,
}

/// Reads a configuration. Addresses that the command line names take the place of those in the text.
///
/// # Errors
/// All problems found, each with its line.
pub fn parse(text: &str, listen: &[SocketAddr]) -> Result<ServeSettings, ConfigError> {
    let mut file = ConfigText::new(text, DESCRIBED);
    let config = read(&mut file, listen);
    file.end(config)
}

fn read(file: &mut ConfigText<'_>, listen: &[SocketAddr]) -> Option<ServeSettings> {
    let ServeSettings { serve: mut config, mut nts, mut ptp } = ServeSettings::default();
    let mut interval_at = 0;
    for (key, value) in &file.table()? {
        let (at, name) = (key.span().start, key.get_ref().as_ref());
        if name == "rate_interval" {
            interval_at = at;
        }
        if let ("nts", DeValue::Table(entries)) = (name, value.get_ref()) {
            read_table(file, entries, &mut |name, text| nts.set(name, text));
            if let Err(error) = nts.identity() {
                file.problem(at, error.to_string());
            }
        } else if let ("ptp", DeValue::Table(entries)) = (name, value.get_ref()) {
            read_table(file, entries, &mut |name, text| ptp.set(name, text));
            if let Some(contradiction) = ptp.contradiction() {
                file.problem(at, contradiction.to_owned());
            }
        } else if LISTS.contains(&name) {
            file.apply_list(at, name, value, &mut |name, text| config.set(name, text));
        } else {
            file.apply(at, name, value, &mut |name, text| config.set(name, text));
        }
    }
    if config.rate_interval != Span::ZERO && config.rate_interval < Span::from_micros(2) {
        file.problem(interval_at, "rate_interval: 2 us is the smallest interval; \"0 s\" is no limit".to_owned());
    }
    if !listen.is_empty() {
        config.listen = Addresses::of(listen.to_vec());
    }
    let mut addresses = config.listen.as_slice().to_vec();
    addresses.sort_unstable();
    if let Some(twice) = addresses.windows(2).find(|pair| pair[0] == pair[1] && pair[0].port() != 0) {
        file.problem(0, format!("listen: {} is named twice", twice[0]));
    }
    Some(ServeSettings { serve: config, nts, ptp })
}

/// Sets an option by its name and its text.
type SetOption<'a> = dyn FnMut(&str, &str) -> Result<(), OptionError> + 'a;

/// Reads the keys of a table.
fn read_table(file: &mut ConfigText<'_>, entries: &DeTable<'_>, set: &mut SetOption<'_>) {
    for (key, value) in entries {
        let (at, name) = (key.span().start, key.get_ref().as_ref());
        if LISTS.contains(&name) {
            file.apply_list(at, name, value, set);
        } else {
            file.apply(at, name, value, set);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_read_and_every_mistake_has_its_line() {
        let text = "listen = [\"192.0.2.1:123\", \"[::1]:1123\"]\nallow = \"10.0.0.0/8\"\nsmear = \"linear-24h\"\n";
        let config = parse(text, &[]).unwrap().serve;
        assert_eq!(config.listen.as_slice().len(), 2);
        assert_eq!(config.allow.to_string(), "10.0.0.0/8");
        let wrong = "threads = 0\nalow = \"10.0.0.0/8\"\nallow = \"10.0.0.1/8\"\nrate_interval = \"1 us\"\n";
        let problems = parse(wrong, &[]).unwrap_err().problems;
        let found: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(found, [1, 2, 3, 4]);
        assert!(problems[1].message.contains("is `allow` meant?"), "{problems:?}");
    }

    /// Every block of TOML in the documents of the server, and the file that is shipped.
    #[test]
    fn what_the_documents_show_is_accepted() {
        let document = include_str!("../../../docs/serve-configuration.md");
        let blocks: Vec<&str> =
            document.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(!blocks.is_empty());
        for text in blocks.into_iter().chain([include_str!("../../../packaging/serve.toml")]) {
            assert!(parse(text, &[]).is_ok(), "{text}");
            let uncommented: String = text
                .lines()
                .map(|line| line.strip_prefix('#').filter(|key| !key.starts_with(' ')).unwrap_or(line))
                .map(|line| line.to_owned() + "\n")
                .collect();
            assert_eq!(parse(&uncommented, &[]).map(|_| ()), Ok(()), "{uncommented}");
        }
    }

    #[test]
    fn the_table_of_nts_is_read_and_its_mistakes_have_their_lines() {
        let text =
            "threads = 2\n[nts]\ncertificate = \"/c\"\nkey = \"/k\"\nlisten = [\"[::]:4460\"]\nrotation = \"1 h\"\n";
        let nts = parse(text, &[]).unwrap().nts;
        assert_eq!((nts.listen.as_slice().len(), nts.rotation), (1, Span::from_secs(3600)));
        let wrong = "[nts]\ncertificate = \"/c\"\nrotatoin = \"1 h\"\nold_keys = 0\nntp_host = \"a b\"\n";
        let problems = parse(wrong, &[]).unwrap_err().problems;
        let found: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(found, [1, 3, 4, 5], "{problems:?}");
        assert!(problems[1].message.contains("is `rotation` meant?"), "{problems:?}");
    }

    #[test]
    fn the_table_of_ptp_is_read_and_its_mistakes_have_their_lines() {
        let text = "[ptp]\ninterfaces = [\"eth0\", \"eth1\"]\nsync_interval = \"125 ms\"\nlocked_max = \"1 ms\"\n";
        let ptp = parse(text, &[]).unwrap().ptp;
        assert_eq!((ptp.interfaces.as_slice().len(), ptp.sync_interval.0), (2, -3));
        let wrong = "[ptp]\ninterfaces = [\"a/b\"]\nsync_interval = \"3 s\"\npriority_1 = 256\nmulticast = false\n";
        let problems = parse(wrong, &[]).unwrap_err().problems;
        let found: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(found, [1, 2, 3, 4], "{problems:?}");
    }

    #[test]
    fn the_command_line_decides_where_to_listen() {
        let here: SocketAddr = "127.0.0.1:1123".parse().unwrap();
        assert_eq!(parse("", &[here]).unwrap().serve.listen.as_slice(), [here]);
        assert_eq!(parse("", &[]).unwrap(), ServeSettings::default());
        assert!(parse("", &[here, here]).unwrap_err().to_string().contains("named twice"));
    }
}

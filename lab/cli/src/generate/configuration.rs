//! The references of the configurations of the daemons, as Markdown and as man pages, from the options that they
//! really read.

use super::Generated;
use super::man::{NO_DATE, SOURCE};
use clap_mangen::roff::{Roff, bold, roman};
use ffclock_units::{OptionDoc, OptionValue};
use std::path::PathBuf;

/// One option, in text form.
struct OptionText {
    section: String,
    name: String,
    help: String,
    kind: String,
    default: String,
    range: Option<(String, String)>,
}

/// Shows every option of a program, with its section.
type DescribeAll = fn(&mut dyn FnMut(&str, OptionDoc<'_>));

/// A configuration to be described.
struct Reference {
    program: &'static str,
    markdown: &'static str,
    /// The name of the man page, and what it is.
    page: (&'static str, &'static str),
    /// Each section, its title and what it is, in the order in which they are shown.
    sections: &'static [(&'static str, &'static str, &'static str)],
    story: &'static str,
    example: &'static str,
    describe: DescribeAll,
}

const DAEMON: Reference = Reference {
    program: "ffclockd",
    markdown: "docs/configuration.md",
    page: ("ffclockd.conf", "configuration of the clock daemon ffclockd"),
    sections: &DAEMON_SECTIONS,
    story: DAEMON_STORY,
    example: DAEMON_EXAMPLE,
    describe: ffclock_daemon::config::describe_all,
};

const SERVE: Reference = Reference {
    program: "ffclock-serve",
    markdown: "docs/serve-configuration.md",
    page: ("ffclock-serve.conf", "configuration of the NTP server ffclock-serve"),
    sections: &[
        ("", "The server as a whole", "Keys at the top of the file."),
        ("nts", "[nts]", "Key establishment and cookies of NTS, which is served where there is a certificate."),
        (
            "ptp",
            "[ptp]",
            "A grandmaster of PTP on the devices that are named: docs/ptp.md. Networks and rates above hold for it, too.",
        ),
    ],
    story: "ffclock-serve reads one file in TOML. A key that is not known, or a value that is out of its range, is an \
            error with its line, and the server does not start; `ffclock-serve --check-config` tries a file without \
            starting. Measures are strings with their unit, lists are arrays of strings. On SIGHUP the file is read \
            again, and what it says of networks, rates, bounds, the smear, refusals and the claim of PTP is in force between two packets; \
            a faulty one changes nothing. The other keys take a restart.",
    example: "allow = [\"192.0.2.0/24\", \"2001:db8::/32\"]\ndeny = [\"192.0.2.66\"]\nthreads = 2\n\
              serve_bound_max = \"100 ms\"\n",
    describe: ffclock_serve::config::describe_all,
};

const STEER: Reference = Reference {
    program: "ffclock-steer",
    markdown: "docs/steer-configuration.md",
    page: ("ffclock-steer.conf", "configuration of the follower ffclock-steer"),
    sections: &[("", "The follower as a whole", "Keys at the top of the file.")],
    story: "ffclock-steer reads one file in TOML. A key that is not known, or a value that is out of its range, is an \
            error with its line, and the follower does not start; `ffclock-steer --check-config` tries a file without \
            starting. Measures are strings with their unit. A change takes a restart.",
    example: "step_at_start = \"10 ms\"\nleap = \"smear\"\n",
    describe: ffclock_steer::config::describe_all,
};

/// What each section of the daemon is, in the order in which they are shown.
const DAEMON_SECTIONS: [(&str, &str, &str); 6] = [
    ("", "The daemon as a whole", "Keys at the top of the file, before any table."),
    (
        "server",
        "[[server]]",
        "One table for each server; at least one, or a [[reference]]. Every key of [source] and [estimator] may stand here too, and then concerns this server alone.",
    ),
    (
        "ptp",
        "[[server]] with protocol = \"ptp\"",
        "Masters of PTP as a server: docs/ptp.md. Of the other keys of a [[server]] it has `address`, `family`, `trust`, `prefer` and `no_select`, \
         `reply_timeout` and `root_distance_max` of [source], and every key of [estimator].",
    ),
    (
        "reference",
        "[[reference]]",
        "One table for each clock at this host: docs/references.md. It counts as a server, and `trust`, `prefer`, `no_select` and every key of [estimator] may \
         stand here too; `poll` is the time between two samples, 1 s unless it says otherwise and 4 s at most.",
    ),
    ("source", "[source]", "How servers are asked: defaults for all of them."),
    (
        "estimator",
        "[estimator]",
        "How exchanges become a clock: defaults for all servers. Where nothing but the algorithm is to be chosen, `estimator = \"classic\"` at \
         the top of the file does it without a table.",
    ),
];

const DAEMON_STORY: &str = "ffclockd reads one file in TOML. A key that is not known, or a value that is out of its range, is an error \
                     with its line, and the daemon does not start; `ffclockd --check-config` tries a file without starting. \
                     Measures are strings with their unit. On SIGHUP the file is read again; a faulty one changes nothing.";

const DAEMON_EXAMPLE: &str = "[source]\npoll = \"4 s\"\n\n[[server]]\naddress = \"ntp.example.org\"\n\n\
                       [[server]]\naddress = \"192.0.2.7\"\npoll = \"1 s\"\n";

/// A document and a man page for each configuration.
pub(super) fn files() -> Vec<Generated> {
    let of = |reference: &Reference| {
        let entries = reference.entries();
        let man = format!("docs/man/{}.5", reference.page.0);
        [
            Generated { path: PathBuf::from(reference.markdown), text: reference.to_markdown(&entries).into_bytes() },
            Generated { path: PathBuf::from(man), text: reference.to_man(&entries).into_bytes() },
        ]
    };
    [DAEMON, SERVE, STEER].iter().flat_map(of).collect()
}

impl OptionText {
    fn new(section: &str, doc: &OptionDoc<'_>) -> Self {
        let bare = [<u32 as OptionValue>::KIND, <f64 as OptionValue>::KIND, <bool as OptionValue>::KIND];
        let bare = bare.contains(&doc.kind);
        let value = |value: &dyn std::fmt::Display| if bare { value.to_string() } else { format!("\"{value}\"") };
        OptionText {
            section: section.to_owned(),
            name: doc.name.to_owned(),
            help: doc.help.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" "),
            kind: doc.kind.to_owned(),
            default: value(doc.default),
            range: doc.range.map(|(low, high)| (value(low), value(high))),
        }
    }

    /// What may be written, what is taken when nothing is, and the limits.
    fn values(&self, quote: &str) -> String {
        let range = self
            .range
            .as_ref()
            .map_or_else(String::new, |(low, high)| format!(" From {quote}{low}{quote} to {quote}{high}{quote}."));
        let default = match self.default.as_str() {
            "\"\"" => "It has no default.".to_owned(),
            default => format!("Default: {quote}{default}{quote}."),
        };
        format!("Value: {}. {default}{range}", self.kind)
    }
}

fn of_section<'e>(entries: &'e [OptionText], section: &'e str) -> impl Iterator<Item = &'e OptionText> {
    entries.iter().filter(move |entry| entry.section == section)
}

impl Reference {
    fn entries(&self) -> Vec<OptionText> {
        let mut entries = Vec::new();
        (self.describe)(&mut |section: &str, doc: OptionDoc<'_>| entries.push(OptionText::new(section, &doc)));
        entries
    }

    fn to_markdown(&self, entries: &[OptionText]) -> String {
        let Reference { program, story, example, .. } = self;
        let mut text = format!(
            "# Configuration of {program}\n\n\
             <!-- Generated by `ffclock-lab generate` from the options structs; edit those. -->\n\n\
             {story}\n\nAn example:\n\n```toml\n{example}```\n"
        );
        for (section, title, story) in self.sections {
            let title = if section.is_empty() { (*title).to_owned() } else { format!("`{title}`") };
            text += &format!("\n## {title}\n\n{}\n", in_code(story));
            for entry in of_section(entries, section) {
                text += &format!("\n### `{}`\n\n{}\n{}\n", entry.name, entry.help, entry.values("`"));
            }
        }
        text
    }

    fn to_man(&self, entries: &[OptionText]) -> String {
        let (name, what) = self.page;
        let mut page = Roff::new();
        page.control("TH", [name, "5", NO_DATE, SOURCE, "ffclock"]);
        page.control("SH", ["NAME"]);
        page.text([roman(format!("{name} - {what}"))]);
        page.control("SH", ["DESCRIPTION"]);
        page.text([roman(self.story.replace('`', ""))]);
        for (section, title, story) in self.sections {
            page.control("SH", [title.to_uppercase().as_str()]);
            page.text([roman(*story)]);
            for entry in of_section(entries, section) {
                page.control("TP", []);
                page.text([bold(entry.name.clone())]);
                page.text([roman(entry.help.replace('`', ""))]);
                page.text([roman(entry.values(""))]);
            }
        }
        page.control("SH", ["EXAMPLE"]);
        page.control("nf", []);
        page.text([roman(self.example)]);
        page.control("fi", []);
        page.control("SH", ["SEE ALSO"]);
        page.text([bold(self.program), roman("(8), "), bold("ffclock"), roman("(1)")]);
        page.render()
    }
}

/// Names of tables in a sentence, marked as code.
fn in_code(story: &str) -> String {
    story.replace("[source]", "`[source]`").replace("[estimator]", "`[estimator]`")
}

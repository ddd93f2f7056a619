//! The marks that stand before servers in every table: what the vote says of a server, with the signs of chronyc and
//! ntpq where these have the same thing.

use ffclock_control::protocol::{BeliefReport, SourceReport};
use std::fmt::Write;

/// A sign before a server, and what it says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// What stands in the table.
    pub(crate) sign: char,
    /// Its meaning in a word or two, below a table.
    name: &'static str,
    /// Its meaning in full.
    meaning: &'static str,
    /// Whether the meaning stands below a table in which the sign occurs.
    is_explained: bool,
}

const SELECTED: Mark = Mark {
    sign: '*',
    name: "selected",
    meaning: "the selected server, which the page names as its reference",
    is_explained: false,
};
const TRUECHIMER: Mark =
    Mark { sign: '+', name: "truechimer", meaning: "another that agrees with the majority", is_explained: false };
const SUSPECT: Mark = Mark {
    sign: '~',
    name: "suspect",
    meaning: "suspect: it agrees with the majority, but paths and claims do not explain its time; it has no weight",
    is_explained: true,
};
const FALSETICKER: Mark = Mark {
    sign: 'x',
    name: "falseticker",
    meaning: "falseticker: the majority contradicts it; it is not believed",
    is_explained: true,
};
const UNDECIDED: Mark = Mark {
    sign: '?',
    name: "undecided",
    meaning: "undecided: no vote can say whether it is right",
    is_explained: true,
};
const NO_SELECT: Mark =
    Mark { sign: '-', name: "no_select", meaning: "only measured, by no_select", is_explained: true };
const UNKNOWN: Mark = Mark { sign: ' ', name: "unknown", meaning: "no vote has heard it yet", is_explained: false };

const ALL: [&Mark; 7] = [&SELECTED, &TRUECHIMER, &SUSPECT, &FALSETICKER, &UNDECIDED, &NO_SELECT, &UNKNOWN];

impl Mark {
    /// The mark of a server. A suspect keeps its mark where it is selected: its time has no weight there either.
    pub(crate) fn of(source: &SourceReport) -> &'static Mark {
        match source.belief {
            BeliefReport::Truechimer if source.vote.suspect => &SUSPECT,
            _ if source.selected => &SELECTED,
            BeliefReport::Truechimer => &TRUECHIMER,
            BeliefReport::Falseticker => &FALSETICKER,
            BeliefReport::Undecided => &UNDECIDED,
            BeliefReport::NoSelect => &NO_SELECT,
            BeliefReport::Unknown => &UNKNOWN,
        }
    }
}

/// The line below a table that explains the marks of servers without weight; empty where there are none.
pub(crate) fn legend(sources: &[SourceReport]) -> String {
    let occurs = |mark: &&&Mark| sources.iter().any(|source| Mark::of(source) == **mark);
    let explained: Vec<String> = ALL
        .iter()
        .filter(|mark| mark.is_explained)
        .filter(occurs)
        .map(|mark| format!("{} {}", mark.sign, mark.name))
        .collect();
    if explained.is_empty() {
        return String::new();
    }
    format!("  {}: see ffclock sources --why\n", explained.join(", "))
}

/// All marks with their meanings, a line each, for a help text.
pub(crate) fn meanings() -> String {
    ALL.iter().fold(String::new(), |mut text, mark| {
        let _ = writeln!(text, "  {}  {}", mark.sign, mark.meaning);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_marks_share_a_sign() {
        for (index, mark) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|earlier| earlier.sign != mark.sign), "{mark:?}");
        }
    }
}

//! Subcommands that an earlier `ffclock` had and `ffclock-lab` has now. They are answered for one version.

use crate::failure::Failure;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What went to the laboratory.
const MOVED: [&str; 9] = ["replay", "report", "sim", "counters", "probe", "theta", "demo", "lab", "generate"];

/// The new name, where the command line was refused because it asks for an old one. Parsing stops there, so whatever
/// follows the old name changes nothing.
pub(crate) fn answer(error: &clap::Error) -> Option<Failure> {
    let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
    else {
        return None;
    };
    let name = MOVED.into_iter().find(|name| word == name)?;
    Some(Failure::usage(format!("`ffclock {name}` is now `ffclock-lab {name}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(words: &[&str]) -> Option<String> {
        let refused = crate::command().try_get_matches_from(words).unwrap_err();
        answer(&refused).map(|failure| failure.message)
    }

    #[test]
    fn each_old_name_is_answered_with_the_new_one() {
        for name in MOVED {
            let wanted = format!("`ffclock {name}` is now `ffclock-lab {name}`");
            for further in [&[][..], &["--help"], &["--page"], &["file", "--json=x", "--", "-"]] {
                let words = [&["ffclock", "--json", name], further].concat();
                assert_eq!(answered(&words).as_deref(), Some(&*wanted), "{words:?}");
            }
        }
    }

    #[test]
    fn other_mistakes_are_left_to_the_usual_words() {
        for words in
            [&["ffclock"][..], &["ffclock", "nonsense"], &["ffclock", "now", "replay"], &["ffclock", "--replay"]]
        {
            assert_eq!(answered(words), None, "{words:?}");
        }
    }
}

//! How the servers vote: whom the operator trusts, and what is published of the outcome.

use super::values::Unrecognised;
use super::{Config, MOST_SERVERS, ServerConfig};
use ffclock_estimator::VotingRules;
use ffclock_units::OptionValue;
use std::fmt;
use std::str::FromStr;

ffclock_units::options! {
    /// How the servers vote.
    pub struct VoteConfig {
        /// Which bound is published as the bound of the clock. `"believed"`: the true time lies within what all
        /// believed servers prove together; it holds as long as none of them is false by less than the others can see.
        /// `"strict"`: it holds although `tolerate` servers are false, in whatever way. The strict bound is always
        /// published beside it.
        bound: PublishedBound = PublishedBound::Believed;
        /// How many servers may be false: `"minority"` for the largest minority of those with a vote, or a number;
        /// never more than the largest minority. All others must agree.
        tolerate: Tolerance = Tolerance(None);
        /// How many servers must agree, beside those that `tolerate` demands: `"majority"` for no more, or a number.
        quorum: Quorum = Quorum(None);
        /// How many servers must answer and be usable; with fewer none is followed. With 1 a clock whose last server
        /// has fallen silent is still called that server's.
        min_servers: u32 = 1, 1 => MOST_SERVERS as u32;
    }
}

ffclock_units::options! {
    /// A server's part in the vote.
    pub struct ServerVote {
        /// Whether the server is trusted, as a reference in the same rack is: trusted servers decide among themselves,
        /// and the others are believed only if they agree with them.
        trust: bool = false;
        /// Whether the server is preferred: while preferred servers are believed and answer, they alone make the clock.
        prefer: bool = false;
        /// Whether the server is measured and shown only: it has no vote and is never believed.
        no_select: bool = false;
    }
}

impl VoteConfig {
    /// The rules of the vote.
    pub(crate) fn rules(&self) -> VotingRules {
        let Tolerance(tolerate) = self.tolerate;
        let Quorum(quorum) = self.quorum;
        VotingRules { tolerate: tolerate.map(|count| count as usize), quorum: quorum.unwrap_or(1) as usize }
    }
}

/// Which bound readers of the one bound get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedBound {
    /// That of what the believed servers share.
    Believed,
    /// That which any tolerated number of liars cannot break.
    Strict,
}

impl FromStr for PublishedBound {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        match text {
            "believed" => Ok(PublishedBound::Believed),
            "strict" => Ok(PublishedBound::Strict),
            _ => Err(Unrecognised),
        }
    }
}

impl fmt::Display for PublishedBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PublishedBound::Believed => "believed",
            PublishedBound::Strict => "strict",
        })
    }
}

impl OptionValue for PublishedBound {
    const KIND: &'static str = "\"believed\" or \"strict\"";
}

/// The most servers that may be false; `None` for the largest minority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance(pub Option<u32>);

/// The least number of servers that must agree; `None` for a majority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum(pub Option<u32>);

/// A number up to the most servers that there can be, or the word that stands for none.
fn count_or(word: &str, least: u32, text: &str) -> Result<Option<u32>, Unrecognised> {
    if text == word {
        return Ok(None);
    }
    let count: u32 = text.parse().map_err(|_| Unrecognised)?;
    (least..=MOST_SERVERS as u32).contains(&count).then_some(Some(count)).ok_or(Unrecognised)
}

fn show_count_or(word: &str, count: Option<u32>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match count {
        Some(count) => write!(f, "{count}"),
        None => f.write_str(word),
    }
}

impl FromStr for Tolerance {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        count_or("minority", 0, text).map(Tolerance)
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_count_or("minority", self.0, f)
    }
}

impl OptionValue for Tolerance {
    const KIND: &'static str = "\"minority\" or a number from 0 to 16";
}

impl FromStr for Quorum {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        count_or("majority", 1, text).map(Quorum)
    }
}

impl fmt::Display for Quorum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_count_or("majority", self.0, f)
    }
}

impl OptionValue for Quorum {
    const KIND: &'static str = "\"majority\" or a number from 1 to 16";
}

/// What can never lead to a majority, with the key that it is about.
pub(super) fn contradictions(config: &Config) -> Vec<(&'static str, String)> {
    let electable = config.servers.iter().filter(|server| !server.vote.no_select).count();
    if config.servers.is_empty() {
        return Vec::new();
    }
    if electable == 0 {
        let message = "every server is no_select, so no time could ever be published: leave it out for one of them";
        return vec![("server", message.to_owned())];
    }
    let trusted = config.servers.iter().filter(|server| server.vote.trust && !server.vote.no_select).count();
    let (deciders, kind) = if trusted > 0 { (trusted, "trusted servers") } else { (electable, "servers") };
    let VoteConfig { tolerate, quorum, min_servers, .. } = config.vote;
    let mut found = Vec::new();
    let tolerated = tolerate.0.unwrap_or_default() as usize;
    let enough = 2 * tolerated + 1;
    if enough > deciders {
        found.push(("tolerate", format!("tolerate = {tolerated} takes {enough} {kind}, and there are {deciders}")));
    }
    for (key, wanted) in [("quorum", quorum.0), ("min_servers", Some(min_servers))] {
        if let Some(wanted) = wanted.filter(|wanted| *wanted as usize > electable) {
            let message = format!("{key} = {wanted} cannot be reached: servers that may be believed: {electable}");
            found.push((key, message));
        }
    }
    found
}

/// What is wrong with a server's part in the vote.
pub(super) fn contradiction(server: &ServerConfig) -> Option<String> {
    let ServerVote { trust, prefer, no_select } = server.vote;
    let other = if trust { "trust" } else { "prefer" };
    let both = no_select && (trust || prefer);
    both.then(|| format!("{other} and no_select contradict each other: a server with no_select is never believed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(parts: &[&str]) -> String {
        let section = |(index, part): (usize, &&str)| format!("[[server]]\naddress = \"s{index}.example\"\n{part}\n");
        parts.iter().enumerate().map(section).collect()
    }

    fn problem(text: &str) -> (usize, String) {
        let error = Config::parse(text).unwrap_err();
        let [problem] = &error.problems[..] else { panic!("{error}") };
        (problem.line, problem.message.clone())
    }

    #[test]
    fn a_majority_decides_unless_more_is_demanded() {
        let config = Config::parse(&servers(&[""])).unwrap();
        assert_eq!(config.vote, VoteConfig::default());
        assert_eq!(config.vote.rules(), VotingRules::default());
        assert_eq!(config.servers[0].vote, ServerVote::default());
        let text = "bound = \"strict\"\ntolerate = 0\nquorum = 2\nmin_servers = 2\n".to_owned()
            + &servers(&["trust = true\nprefer = true", "no_select = true", ""]);
        let config = Config::parse(&text).unwrap();
        assert_eq!(config.vote.bound, PublishedBound::Strict);
        assert_eq!(config.vote.rules(), VotingRules { tolerate: Some(0), quorum: 2 });
        assert_eq!(config.vote.min_servers, 2);
        assert_eq!(config.servers[0].vote, ServerVote { trust: true, prefer: true, no_select: false });
        assert!(config.servers[1].vote.no_select);
    }

    #[test]
    fn what_no_vote_can_fulfil_is_refused_with_its_line() {
        let two = servers(&["", ""]);
        let tolerate = problem(&format!("valid_for = \"8 s\"\ntolerate = 1\n{two}"));
        assert_eq!(tolerate, (2, "tolerate = 1 takes 3 servers, and there are 2".to_owned()));
        let quorum = problem(&format!("quorum = 3\n{two}"));
        assert_eq!(quorum, (1, "quorum = 3 cannot be reached: servers that may be believed: 2".to_owned()));
        let least = problem(&format!("min_servers = 2\n{}", servers(&["", "no_select = true"])));
        assert_eq!(least, (1, "min_servers = 2 cannot be reached: servers that may be believed: 1".to_owned()));
        let trusted = problem(&format!("tolerate = 1\n{}", servers(&["trust = true", "", ""])));
        assert!(trusted.1.contains("takes 3 trusted servers"), "{trusted:?}");
        let none = problem(&servers(&["no_select = true", "no_select = true"]));
        assert!(none.0 == 1 && none.1.contains("every server is no_select"), "{none:?}");
        for (key, place) in [("trust", 1), ("prefer", 1)] {
            let both = problem(&servers(&[&format!("{key} = true\nno_select = true"), ""]));
            assert!(both.0 == place && both.1.starts_with(&format!("{key} and no_select contradict")), "{both:?}");
        }
    }

    #[test]
    fn words_and_numbers_read_back() {
        for text in ["minority", "0", "16"] {
            assert_eq!(text.parse::<Tolerance>().unwrap().to_string(), text);
        }
        for text in ["majority", "1", "16"] {
            assert_eq!(text.parse::<Quorum>().unwrap().to_string(), text);
        }
        for text in ["believed", "strict"] {
            assert_eq!(text.parse::<PublishedBound>().unwrap().to_string(), text);
        }
        for text in ["17", "-1", "most", ""] {
            assert_eq!(text.parse::<Tolerance>(), Err(Unrecognised), "{text}");
            assert_eq!(text.parse::<Quorum>(), Err(Unrecognised), "{text}");
        }
        assert_eq!("0".parse::<Quorum>(), Err(Unrecognised));
        let wrong = problem(&format!("bound = \"wide\"\n{}", servers(&[""])));
        assert!(wrong.1.contains("\"believed\" or \"strict\""), "{wrong:?}");
    }
}

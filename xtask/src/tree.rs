//! The files under check: the files that git tracks or would track, as text, by their path from the root.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Path from the root of the workspace (with `/`) to text.
#[derive(Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
    /// Files that are not text, such as pictures.
    others: Vec<String>,
}

impl Tree {
    /// Reads every file that git tracks or does not ignore; of those that are not UTF-8 text only the names.
    ///
    /// # Errors
    /// When git cannot list the files.
    pub fn of_checkout(root: &Path) -> Result<Tree, String> {
        let listing = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .map_err(|error| format!("cannot run git to list the files: {error}"))?;
        if !listing.status.success() {
            return Err(format!("git ls-files: {}", String::from_utf8_lossy(&listing.stderr)));
        }
        let names = String::from_utf8_lossy(&listing.stdout);
        let mut tree = Tree { files: BTreeMap::new(), others: Vec::new() };
        for name in names.split('\0').filter(|name| root.join(name).is_file()) {
            match std::fs::read_to_string(root.join(name)) {
                Ok(text) => drop(tree.files.insert(name.to_owned(), text)),
                Err(_) => tree.others.push(name.to_owned()),
            }
        }
        Ok(tree)
    }

    /// Every file.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files whose name has this end, such as `.rs`.
    pub fn with_extension<'a>(&'a self, extension: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files().filter(move |(path, _)| path.ends_with(extension))
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether `path` is a file, or a directory with a file in it.
    pub fn contains(&self, path: &str) -> bool {
        let directory = format!("{}/", path.trim_end_matches('/'));
        self.files.keys().chain(&self.others).any(|file| file == path || file.starts_with(&directory))
    }

    /// Directories that hold a Cargo package, such as `clock/units`.
    pub fn packages(&self) -> impl Iterator<Item = &str> {
        self.files()
            .filter(|(_, text)| text.contains("[package]"))
            .filter_map(|(path, _)| path.strip_suffix("/Cargo.toml"))
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Tree {
    fn from(files: [(&str, &str); N]) -> Tree {
        let files = files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
        Tree { files, others: Vec::new() }
    }
}

/// `base` joined with a relative `link`, with `.` and `..` taken out; `None` when it leaves the workspace.
pub fn resolve(base: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The directory of a file; empty for the root.
pub fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_and_may_not_leave_the_workspace() {
        assert_eq!(resolve("docs/decisions", "../page.md").as_deref(), Some("docs/page.md"));
        assert_eq!(resolve("", "./README.md").as_deref(), Some("README.md"));
        assert_eq!(resolve("docs", "../../secret"), None);
    }

    #[test]
    fn a_directory_is_contained_when_a_file_in_it_is() {
        let tree = Tree::from([("docs/page.md", ""), ("clock/units/Cargo.toml", "[package]")]);
        assert!(tree.contains("docs") && tree.contains("docs/") && tree.contains("docs/page.md"));
        assert!(!tree.contains("doc"));
        assert_eq!(tree.packages().collect::<Vec<_>>(), ["clock/units"]);
    }
}

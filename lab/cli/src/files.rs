//! The files that a command reads and writes: no output may be another file of the command.

use crate::failure::Failure;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file and its name in error messages: its content, or the option that names it. A file that was not asked for has
/// no path.
pub(crate) type NamedPath<'a> = (&'a str, Option<&'a Path>);

/// Checks all files of a command before the first of them is created or emptied.
pub(crate) fn check(inputs: &[NamedPath], outputs: &[NamedPath]) -> Result<(), Failure> {
    for (index, (option, output)) in outputs.iter().enumerate() {
        let Some(output) = output else { continue };
        let is_output = |other: &NamedPath| other.1.is_some_and(|other| is_same_file(output, other));
        if let Some((input, _)) = inputs.iter().find(|input| is_output(input)) {
            return Err(Failure::usage(format!("{option} would overwrite the {input}; name another file")));
        }
        if let Some((other, _)) = outputs[..index].iter().find(|other| is_output(other)) {
            return Err(Failure::usage(format!("{other} and {option} name the same file; give each its own")));
        }
    }
    Ok(())
}

/// The file that `option` should create exists already.
pub(crate) fn in_the_way(path: &Path, option: &str) -> Failure {
    let path = path.display();
    Failure::from(format!("{path} is there already: {option} never overwrites; take another name, or remove the file"))
}

/// Whether both names lead to one file, existing or to be created. Devices and pipes hold nothing that could be lost.
fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()),
        (Err(_), Err(_)) => place(one).is_some_and(|place| Some(place) == self::place(other)),
        _ => false,
    }
}

/// Where a file will be made.
fn place(path: &Path) -> Option<PathBuf> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(directory.canonicalize().ok()?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_neither_an_input_nor_another_output() {
        let directory = std::env::temp_dir().join(format!("ffclock-files-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let [there, link, new, again] = ["there", "link", "new", "./new"].map(|name| directory.join(name));
        std::fs::write(&there, "").unwrap();
        std::os::unix::fs::symlink(&there, &link).unwrap();
        let refusal = |input: &Path, outputs: [&Path; 2]| {
            let outputs = [("--a", Some(outputs[0])), ("--none", None), ("--b", Some(outputs[1]))];
            check(&[("trace", Some(input)), ("stamps", None)], &outputs).err().map(|failure| failure.message)
        };
        let null = Path::new("/dev/null");
        let answers = [
            refusal(&there, [&link, &new]),
            refusal(&there, [&new, &again]),
            refusal(&new, [&there, &link]),
            refusal(null, [null, null]),
            refusal(&there, [&new, null]),
        ];
        std::fs::remove_dir_all(&directory).unwrap();
        let wrong = |text: &str| Some(text.to_owned());
        let same = wrong("--a and --b name the same file; give each its own");
        let input = wrong("--a would overwrite the trace; name another file");
        assert_eq!(answers, [input, same.clone(), same, None, None]);
    }
}

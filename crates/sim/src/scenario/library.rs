//! The scenarios that are built in: the files of `scenarios/`.

/// Finds built-in scenarios.
#[derive(Clone, Copy, Debug)]
pub struct Library;

macro_rules! library {
    ($($name:literal,)*) => {
        /// The names of the built-in scenarios.
        pub const NAMES: [&str; [$($name),*].len()] = [$($name),*];

        impl Library {
            /// The file of a scenario.
            pub fn text(name: &str) -> Option<&'static str> {
                match name {
                    $($name => Some(include_str!(concat!("../../../../scenarios/", $name, ".toml"))),)*
                    _ => None,
                }
            }
        }
    };
}

library! {
    "lan-16",
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_file_is_built_in() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let file_names =
            std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> =
            file_names.filter_map(|name| name.strip_suffix(".toml").map(str::to_owned)).collect();
        names.sort();
        let mut built_in = NAMES.to_vec();
        built_in.sort_unstable();
        assert_eq!(names, built_in);
    }
}

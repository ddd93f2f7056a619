//! Subcommands that `ffclock-lab` has now.

use crate::common::Place;

#[test]
fn an_old_command_names_the_new_one_and_ends_with_two() {
    for name in ["replay", "report", "sim", "counters", "probe", "theta", "demo", "lab", "generate"] {
        for further in [&[][..], &["--help"], &["file", "--no-such-option", "--page"], &["run", "--json", "--", "-x"]] {
            let ended = Place::new().run(&[&[name], further].concat());
            let said = format!("ffclock: `ffclock {name}` is now `ffclock-lab {name}`\n");
            assert_eq!((ended.code, ended.out.as_str(), ended.err), (2, "", said), "{further:?}");
        }
    }
}

//! Scripted dialogues with virtual and with real masters and followers, in virtual time.

mod any_calls;
mod captured;
mod following;
mod grandmaster;
mod hostile;
mod script;
mod unacceptable;
mod unicast;

/// Each test says which clause it is about, whose behaviour it follows, or that no clause has it.
#[test]
fn each_dialogue_names_its_clause() {
    let files = [
        include_str!("captured.rs"),
        include_str!("following.rs"),
        include_str!("grandmaster.rs"),
        include_str!("hostile.rs"),
        include_str!("unacceptable.rs"),
        include_str!("unicast.rs"),
    ];
    let mut tests = 0;
    for file in files {
        let mut said = String::new();
        for line in file.lines() {
            if line == "#[test]" {
                let is_named = ["IEEE 1588-2019, ", "linuxptp", "No clause"].iter().any(|source| said.contains(source));
                assert!(is_named, "a test has no clause above it, only {said:?}");
                tests += 1;
            }
            if line.starts_with("///") { said.push_str(line) } else { said.clear() }
        }
    }
    assert!(tests > 50, "{tests} tests were found");
}

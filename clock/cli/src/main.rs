//! The `ffclock` command; the library beside it has the subcommands.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    ffclock_cli::main()
}

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
    "ptp-hardware",
    "ptp-hardware-quiet",
    "ptp-hardware-restless",
    "pulses",
    "pulses-quiet",
    "lan-16",
    "near-16",
    "far-16",
    "lan-64",
    "lan-256",
    "lan-1024",
    "lan-hpet",
    "lan-acpi-pm",
    "near-64",
    "near-256",
    "near-1024",
    "near-hpet",
    "near-acpi-pm",
    "far-64",
    "far-256",
    "far-1024",
    "far-hpet",
    "far-acpi-pm",
    "lan-congested",
    "lan-congested-forward",
    "lan-markov",
    "lan-gamma",
    "lan-self-similar",
    "far-congested-forward",
    "host-noise",
    "host-coalescing",
    "wave-200",
    "wave-1000",
    "wave-day",
    "wave-day-200-ppb-lan",
    "wave-day-200-ppb-near",
    "wave-day-500-ppb-lan",
    "wave-day-500-ppb-near",
    "wave-day-1-ppm-lan",
    "wave-day-1-ppm-near",
    "wave-day-2-ppm-lan",
    "wave-day-2-ppm-near",
    "wave-day-1-ppm-far",
    "wave-day-1-ppm-lan-256",
    "wave-day-1-ppm-lan-1024",
    "wave-day-1-ppm-near-1024",
    "wave-day-200-ppb-far",
    "wave-day-500-ppb-far",
    "wave-day-2-ppm-far",
    "wave-day-200-ppb-lan-256",
    "wave-day-500-ppb-lan-256",
    "wave-day-2-ppm-lan-256",
    "wave-day-200-ppb-lan-1024",
    "wave-day-500-ppb-lan-1024",
    "wave-day-2-ppm-lan-1024",
    "wave-day-200-ppb-near-1024",
    "wave-day-500-ppb-near-1024",
    "wave-day-2-ppm-near-1024",
    "wave-day-1-ppm-near-16",
    "wave-day-1-ppm-near-256",
    "wave-day-1-ppm-far-16",
    "wave-day-1-ppm-far-256",
    "wave-day-1-ppm-far-1024",
    "wave-day-2-ppm-near-16",
    "wave-day-2-ppm-near-256",
    "wave-day-2-ppm-far-16",
    "wave-day-2-ppm-far-256",
    "wave-day-2-ppm-far-1024",
    "load-steps",
    "disconnection-1h",
    "disconnection-2h",
    "disconnection-12h",
    "intermittent",
    "suspend-stops",
    "suspend-resets",
    "suspend-runs",
    "route-up",
    "route-up-forward",
    "route-up-backward",
    "route-down",
    "route-exposes-asymmetry",
    "route-flapping",
    "route-down-forward",
    "route-down-backward",
    "loss-40",
    "bursts",
    "server-wrong-150ms",
    "server-wrong-1s",
    "server-drift",
    "server-claims",
    "server-understates",
    "server-restart",
    "server-limit",
    "server-smear",
    "leap-second",
    "start-0ppm",
    "start-50ppm",
    "start-100ppm",
    "start-quick",
    "start-jitter",
    "start-near-64",
    "start-far-16",
    "start-three-servers",
    "difference-clock",
    "world-1",
    "world-2",
    "three-servers-one-wrong",
    "three-servers-one-lies-later",
    "three-servers-one-drifts",
    "queue-4us-16",
    "queue-50us-64",
    "queue-1ms-64",
    "queue-200us-1024",
    "queue-uneven-64",
    "liars-1-of-3-step",
    "liars-1-of-3-drift",
    "liars-1-of-3-alike",
    "liars-1-of-3-join",
    "liars-1-of-3-step-50-ms",
    "liars-1-of-3-step-1-s",
    "liars-1-of-3-step-1-h",
    "liars-1-of-3-drift-1-ppm",
    "liars-1-of-3-claims",
    "liars-2-of-5-step",
    "liars-2-of-5-drift",
    "liars-2-of-5-alike",
    "liars-2-of-5-join",
    "liars-3-of-7-step",
    "liars-3-of-7-drift",
    "liars-3-of-7-alike",
    "liars-3-of-7-join",
    "hidden-liar-constant",
    "hidden-liar-creeps",
    "hidden-liar-runs",
    "hidden-liars-2-of-5",
    "hidden-liars-3-of-7",
    "nearest-leaves",
    "nearest-jumps",
    "nearest-drifts",
    "nearest-creeps",
    "five-servers-one-uplink",
    "drawn-asymmetry-1",
    "drawn-asymmetry-4",
    "drawn-asymmetry-5",
    "drawn-asymmetry-5-lan",
    "soft-hump-cable",
    "soft-hump-cellular",
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

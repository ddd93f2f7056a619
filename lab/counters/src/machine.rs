//! Which machine a recording was made on, so that those of several can be put side by side.

use serde::Serialize;
use std::fs;

/// A machine as its kernel names it. What the kernel does not say is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    /// Its name in the network.
    pub host: Option<String>,
    /// The model of its processor.
    pub cpu: Option<String>,
    /// The frequency that the kernel states for the first processor [Hz].
    pub cpu_hertz: Option<f64>,
    /// The release of the kernel.
    pub kernel: Option<String>,
}

impl Machine {
    /// The one that this runs on.
    pub fn of_this_host() -> Self {
        let text = |path: &str| fs::read_to_string(path).ok();
        // A kernel that was given no name says "(none)".
        let is_name = |text: &String| !text.is_empty() && text != "(none)";
        let name = |path: &str| text(path).map(|text| text.trim().to_owned()).filter(is_name);
        let (cpu, cpu_hertz) = processor(&text("/proc/cpuinfo").unwrap_or_default());
        let (host, kernel) = (name("/proc/sys/kernel/hostname"), name("/proc/sys/kernel/osrelease"));
        Machine { host, cpu, cpu_hertz, kernel }
    }
}

/// Model and frequency [Hz] of the first processor of /proc/cpuinfo.
fn processor(cpuinfo: &str) -> (Option<String>, Option<f64>) {
    let value = |name: &str| {
        let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
    };
    let megahertz = value("cpu MHz").and_then(|text| text.parse::<f64>().ok());
    (value("model name").or_else(|| value("CPU part")), megahertz.map(|megahertz| megahertz * 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_processor_is_named() {
        let text =
            "processor\t: 0\nmodel name\t: A CPU: @ 2 GHz\ncpu MHz\t\t: 2595.124\nprocessor\t: 1\ncpu MHz\t\t: 900\n";
        assert_eq!(processor(text), (Some("A CPU: @ 2 GHz".to_owned()), Some(2_595_124_000.0)));
        assert_eq!(processor("CPU part\t: 0xd0c\n"), (Some("0xd0c".to_owned()), None));
        assert_eq!(processor(""), (None, None));
    }
}

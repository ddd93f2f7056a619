//! Faults of the host around the daemon.

use super::{Listens, Seed};
use crate::doctor::own_user;
use std::fs;

const GUEST: &str = "flags\t\t: fpu constant_tsc nonstop_tsc hypervisor\n";

pub(super) const SEEDS: &[Seed] = &[
    Seed {
        sow: |host| {
            host.config = None;
            host.listens = Listens::Absent;
        },
        finds: &["config-missing", "daemon-absent"],
    },
    // Its servers are on its command line.
    Seed { sow: |host| host.config = None, finds: &[] },
    Seed {
        sow: |host| host.program("ffclockd", "echo 'line 3: unknown key pol' >&2; exit 1"),
        finds: &["config-wrong"],
    },
    Seed {
        sow: |host| {
            host.config = None;
            fs::create_dir_all(host.place.file("etc/ffclock/ffclockd.toml")).unwrap();
        },
        finds: &["config-wrong"],
    },
    Seed { sow: |host| host.program("ffclockd", "exec sleep 60"), finds: &["config-unchecked"] },
    Seed { sow: |host| host.config = Some("[[server]]\naddress = \"ntp.example.org\"\n"), finds: &["config-example"] },
    Seed {
        sow: |host| {
            host.config = Some("require = \"nts\"\n[[server]]\naddress = \"a.example\"\n");
            for key in ["authentication", "vote"] {
                let of = &mut host.report["sources"][2][key];
                *of = if key == "vote" {
                    serde_json::json!({ "no_select": true, "trust": false, "prefer": false, "warming_up": false })
                } else {
                    serde_json::json!({ "kind": "none" })
                };
            }
            let again = host.report["sources"][0].clone();
            host.report["sources"].as_array_mut().unwrap().push(again);
        },
        finds: &["require-unmet"],
    },
    Seed {
        sow: |host| {
            host.config = Some("keys = \"/etc/ffclock/keys\"\n");
            host.write("etc/ffclock/keys", "1 AES128 HEX:00\n");
            host.mode("etc/ffclock/keys", 0o644);
        },
        finds: &["keys-readable"],
    },
    Seed {
        sow: |host| host.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
        finds: &["clocksource-slow"],
    },
    Seed { sow: |host| host.write("proc/cpuinfo", "flags\t\t: fpu tsc\n"), finds: &["tsc-inconstant"] },
    Seed { sow: |host| host.write("proc/cpuinfo", GUEST), finds: &["guest-unwatched"] },
    Seed {
        sow: |host| {
            host.write("proc/cpuinfo", GUEST);
            host.write("dev/vmclock0", "");
        },
        finds: &[],
    },
    Seed {
        sow: |host| {
            host.write("proc/cpuinfo", GUEST);
            host.config = Some("vm_clock = \"off\"\n[[server]]\naddress = \"a.example\"\n");
        },
        finds: &[],
    },
    Seed { sow: |host| host.process(72, "systemd-timesyn", 100, 0), finds: &["steered-twice"] },
    // One that leaves the clock alone.
    Seed {
        sow: |host| {
            host.process(72, "systemd-timesyn", 100, 0);
            host.write("proc/71/cmdline", "/usr/sbin/chronyd\0-x\0");
        },
        finds: &[],
    },
    Seed {
        sow: |host| {
            host.process(72, "phc2sys", 0, 0);
            host.write("proc/72/cmdline", "/usr/sbin/phc2sys\0-s\0CLOCK_REALTIME\0-c\0eth0\0");
            host.process(73, "ffclock-steer", 0, 0);
            host.write("proc/73/cmdline", "ffclock-steer\0--dry-run\0");
        },
        finds: &[],
    },
    Seed { sow: |host| host.process(80, "ffclockd", 7, 0), finds: &["daemon-twice"] },
    // The page of the container's host: there is neither a daemon nor a configuration here, and nothing is missing.
    Seed {
        sow: |host| {
            host.config = None;
            host.listens = Listens::Absent;
            host.write("run/.containerenv", "");
        },
        finds: &["daemon-elsewhere"],
    },
    Seed {
        sow: |host| {
            host.config = None;
            host.listens = Listens::Absent;
            host.write("run/.containerenv", "");
            fs::remove_file(host.place.page()).unwrap();
        },
        finds: &["page-missing", "daemon-absent", "config-missing"],
    },
    // That of a container, as root, is no matter of this host.
    Seed {
        sow: |host| {
            host.write("proc/80/status", "Name:\tffclockd\nUid:\t0\t0\t0\t0\nNSpid:\t80\t1\n");
            host.write("proc/80/stat", "80 (ffclockd) S 1 1 1 0 -1 4194560 1 0 0 0 1 2 0 0 20 19 1 0 100 1 1\n");
        },
        finds: &[],
    },
    Seed { sow: |host| host.process(70, "ffclockd", 0, 0), finds: &["daemon-root"] },
    Seed { sow: |host| host.process(70, "ffclockd", own_user(&host.place).max(1), 19), finds: &["daemon-nice"] },
    Seed {
        sow: |host| {
            fs::create_dir_all(host.place.file("var/lib/ffclock")).unwrap();
            host.process(70, "ffclockd", own_user(&host.place) + 1, 0);
        },
        finds: &["state-rights"],
    },
    Seed {
        sow: |host| host.program("systemctl", "echo LoadState=loaded; echo ActiveState=failed; echo Result=exit-code"),
        finds: &["unit-failed"],
    },
    Seed {
        sow: |host| host.program("systemctl", "echo LoadState=loaded; echo ActiveState=active; echo NRestarts=7"),
        finds: &["unit-restarts"],
    },
    // Long ago.
    Seed {
        sow: |host| {
            host.config = None;
            host.report["uptime_s"] = 100_000.0.into();
            host.program("systemctl", "echo LoadState=loaded; echo ActiveState=active; echo NRestarts=7");
        },
        finds: &[],
    },
    Seed {
        sow: |host| host.program("systemctl", "echo LoadState=loaded; echo UnitFileState=disabled"),
        finds: &["unit-disabled"],
    },
    Seed { sow: |host| host.program("systemctl", "echo LoadState=not-found"), finds: &[] },
];

//! `watch` on a terminal: it takes the screen, shows the clock, and gives the terminal back whatever ends it.

use crate::common::Place;
use ffclock_units::Status;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Child;

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const COLUMNS: u16 = 100;

/// A terminal with `ffclock watch` on it.
struct Watched {
    screen: File,
    line: OwnedFd,
    child: Child,
    shown: String,
    _place: Place,
}

impl Watched {
    fn start() -> Self {
        let place = Place::new();
        place.publish(Status::Synchronised);
        place.answer(include_str!("status.json").trim());
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let name = ptsname(&screen, Vec::new()).unwrap();
        let line = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        tcsetwinsize(&line, Winsize { ws_row: 30, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let mut command = place.command(&["watch", "--interval", "20 ms"]);
        command.env("TERM", "xterm").stdin(line.try_clone().unwrap()).stdout(line.try_clone().unwrap());
        let child = command.spawn().unwrap();
        Watched { screen: File::from(screen), line, child, shown: String::new(), _place: place }
    }

    /// Reads what is shown until `mark` has been.
    fn read_until(&mut self, mark: &str) {
        let mut part = [0; 4096];
        while !self.shown.contains(mark) {
            let count = self.screen.read(&mut part).unwrap();
            self.shown += &String::from_utf8_lossy(&part[..count]);
        }
    }

    /// The command ends well and the terminal is as before.
    fn end(mut self) -> String {
        self.read_until(LEAVE);
        assert!(self.child.wait().unwrap().success());
        let modes = tcgetattr(&self.line).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG), "{modes:?}");
        self.shown
    }
}

#[test]
fn the_screen_shows_the_clock_and_q_gives_it_back() {
    let mut watched = Watched::start();
    watched.read_until("q or Ctrl-C to leave");
    assert!(!tcgetattr(&watched.line).unwrap().local_modes.contains(LocalModes::ICANON));
    watched.screen.write_all(b"xq").unwrap();
    let shown = watched.end();
    assert!(shown.starts_with(ENTER), "{shown:?}");
    for part in
        ["2026-11-21T09:30:", "+- 812.", "synchronised", "offset", "uncertainty", "rate", "floor", "ntp.example.org"]
    {
        assert!(shown.contains(part), "{part}: {shown:?}");
    }
}

#[test]
fn ctrl_c_and_signals_give_the_terminal_back() {
    let mut watched = Watched::start();
    watched.read_until("q or Ctrl-C to leave");
    watched.screen.write_all(&[3]).unwrap();
    watched.end();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut watched = Watched::start();
        watched.read_until("q or Ctrl-C to leave");
        kill_process(Pid::from_child(&watched.child), signal).unwrap();
        watched.end();
    }
}

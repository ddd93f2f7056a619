//! The terminal while `watch` has it: taken over whole, and given back as it was.

use crate::failure::Failure;
use crate::output;
use ffclock_sys::{Interest, Signals, poll};
use ffclock_units::{Moment, Mono};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{stdin, stdout};
use std::os::fd::AsFd;

/// Other screen, no cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// The cursor again, the screen as it was.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// To the upper left corner.
const HOME: &str = "\x1b[H";
/// The rest of this line is empty; then the next one.
const NEXT_LINE: &str = "\x1b[K\r\n";
/// The rest of the screen is empty.
const CLEAR_BELOW: &str = "\x1b[J";

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// No key was pressed that matters.
    None,
    /// The user wants to leave.
    Leave,
}

/// Columns and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) lines: usize,
}

/// The terminal, until it is dropped.
pub(super) struct Terminal {
    before: Termios,
    signals: Signals,
}

impl Terminal {
    /// Takes it over. Ctrl-C is a key and signals are noted from now on, so that neither ends the program before the
    /// terminal is given back.
    pub(super) fn take() -> Result<Self, Failure> {
        let signals = Signals::install().map_err(|error| format!("cannot take over the signals: {error}"))?;
        let before = tcgetattr(stdin()).map_err(|error| format!("cannot read the state of the terminal: {error}"))?;
        let mut keys = before.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(stdin(), OptionalActions::Now, &keys)
            .map_err(|error| format!("cannot set up the terminal: {error}"))?;
        let terminal = Terminal { before, signals };
        output::write(ENTER)?;
        Ok(terminal)
    }

    /// How large it is now; a common size where it does not say.
    pub(super) fn size(&self) -> Size {
        match tcgetwinsize(stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Size { columns: size.ws_col.into(), lines: size.ws_row.into() }
            }
            _ => Size { columns: 80, lines: 24 },
        }
    }

    /// Shows `lines` from the upper left corner on, without a flicker in between.
    pub(super) fn draw(&self, lines: &[String]) -> Result<(), Failure> {
        output::write(&format!("{HOME}{}{CLEAR_BELOW}", lines.join(NEXT_LINE)))
    }

    /// Waits for a key or a signal until `next` at the latest.
    pub(super) fn wait_until(&mut self, next: Moment<Mono>) -> Result<Key, Failure> {
        loop {
            let keys = stdin();
            let mut waiting = [Interest::readable(keys.as_fd()), Interest::readable(self.signals.as_fd())];
            poll(&mut waiting, Some(next))?;
            let [pressed, _] = waiting.map(|interest| interest.is_ready());
            if self.signals.take().is_some() || (pressed && wants_to_leave()) {
                return Ok(Key::Leave);
            }
            if ffclock_sys::mono_now() >= next {
                return Ok(Key::None);
            }
        }
    }
}

/// `q`, Ctrl-C and Ctrl-D leave, and so does the end of input: the terminal has gone.
fn wants_to_leave() -> bool {
    const CTRL_C: u8 = 3;
    const CTRL_D: u8 = 4;
    let mut keys = [0; 16];
    match rustix::io::read(stdin(), &mut keys) {
        Ok(0) | Err(_) => true,
        Ok(count) => keys[..count].iter().any(|key| matches!(*key, b'q' | b'Q' | CTRL_C | CTRL_D)),
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A failure cannot be reported: the terminal itself has gone.
        let _ = output::write(LEAVE);
        let _ = tcsetattr(stdin(), OptionalActions::Flush, &self.before);
    }
}

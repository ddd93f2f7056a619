//! The file of the page: made again when it was removed, replaced or cut off, and repaired when it was damaged.

use super::Keeper;
use ffclock_page::{BootId, Writer};
use ffclock_sys::SharedPage;
use ffclock_units::Span;

/// After the page could not be made again, the next attempt waits this long.
const PAGE_AGAIN: Span = Span::from_secs(4);

impl Keeper<'_> {
    /// Makes the page again if its file is not in its place: a program that opens it now finds none, or another.
    /// Programs that mapped the old one see it run out, and open it again.
    ///
    /// Every turn of the loop looks, before anything is stored: a store into a file that was cut off would end the
    /// daemon.
    pub(super) fn keep_page(&mut self) {
        let path = self.config.page.as_path();
        let now = self.context.now;
        let boot = BootId::parse(&self.boot);
        let journal = &mut self.context.journal;
        if self.writer.memory().is_at(path) {
            if self.writer.mend_header(boot) {
                self.next_heartbeat = now;
                journal.warn("the page's header was damaged: it is written again", &path.display().to_string());
            }
            return;
        }
        if now < self.next_page {
            return;
        }
        match SharedPage::create(path) {
            Ok(page) => {
                self.writer = Writer::open(page, boot);
                self.next_heartbeat = now;
                journal.warn("the page was removed or replaced: it is made again", &path.display().to_string());
            }
            Err(error) => {
                self.next_page = now + PAGE_AGAIN;
                journal.warn("the page was removed or replaced, and cannot be made again", &error.to_string());
            }
        }
    }
}

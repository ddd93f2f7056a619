//! The files of the page and of its history: made again when one was removed, replaced or cut off, and the page
//! repaired when it was damaged.

use super::Keeper;
use ffclock_page::{BootId, HistoryWriter, Publication, Writer};
use ffclock_sys::{SharedHistory, SharedPage, history_beside};
use ffclock_units::Span;

/// After the page could not be made again, the next attempt waits this long.
const PAGE_AGAIN: Span = Span::from_secs(4);

impl Keeper<'_> {
    /// Makes the page again if its file is not in its place: a program that opens it now finds none, or another.
    /// Programs that mapped the old one see it run out, and open it again.
    ///
    /// Every turn of the loop looks, and each publication again, before anything is stored: a store into a file that
    /// was cut off would end the daemon.
    pub(super) fn keep_page(&mut self) {
        self.keep_page_file();
        self.keep_history();
    }

    fn keep_page_file(&mut self) {
        let path = self.config.page.as_path();
        let now = self.context.now;
        let boot = BootId::parse(&self.boot);
        let journal = &mut self.context.journal;
        if self.writer.memory().is_at(path) {
            if self.writer.repair_header(boot) {
                self.next_heartbeat = now;
                journal.warn("the page's header was damaged: it is written again", &path.display().to_string());
            }
            self.writer.show_machine(self.host_counter.machine_mark());
            return;
        }
        // A daemon that replaced the page writes the history beside it as well.
        self.history = None;
        if now < self.next_page {
            return;
        }
        match SharedPage::create(path) {
            Ok(page) => {
                self.writer = Writer::open(page, boot);
                self.writer.show_machine(self.host_counter.machine_mark());
                self.next_heartbeat = now;
                journal.warn("the page was removed or replaced: it is made again", &path.display().to_string());
            }
            Err(error) => {
                self.next_page = now + PAGE_AGAIN;
                journal.warn("the page was removed or replaced, and cannot be made again", &error.to_string());
            }
        }
    }

    /// Keeps a line in the history. Where the remembered rate proved false the lines before were made of it, and their
    /// bounds are false as well.
    pub(super) fn keep_line(&mut self, publication: &Publication) {
        let is_false = self.forget_false_rate();
        let Some(history) = &mut self.history else { return };
        if is_false {
            history.clear();
        }
        history.keep(publication);
    }

    /// Makes the history if it is not in its place. Without one the daemon does its work; old stamps are then converted
    /// by the newest line. Programs that mapped the old one find nothing of the time after it, and do the same.
    fn keep_history(&mut self) {
        let path = history_beside(self.config.page.as_path());
        let had_one = self.history.is_some();
        if self.history.as_ref().is_some_and(|history| history.memory().is_at(&path)) {
            return;
        }
        self.history = None;
        let now = self.context.now;
        if now < self.next_history || !self.writer.memory().is_at(self.config.page.as_path()) {
            return;
        }
        let journal = &mut self.context.journal;
        match SharedHistory::create(&path) {
            Ok(memory) => {
                self.history = Some(HistoryWriter::open(memory, BootId::parse(&self.boot)));
                if had_one {
                    let path = path.display().to_string();
                    journal.warn("the history was removed or replaced: it is made again", &path);
                }
            }
            Err(error) => {
                self.next_history = now + PAGE_AGAIN;
                journal.warn("old stamps will not be converted well", &error.to_string());
            }
        }
    }
}

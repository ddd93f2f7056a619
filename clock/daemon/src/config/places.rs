//! Where the daemon of an ordinary user keeps its files. A file that the configuration does not name goes into the
//! user's own directories (XDG Base Directory Specification) if this user may not write where the system keeps it.

use super::{DaemonConfig, FilePath, Switchable};
use ffclock_sys::places;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What decides where files go.
pub struct Surroundings<'a> {
    /// The environment's variables.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Whether this user may write into a directory, or make it.
    pub may_write: &'a dyn Fn(&Path) -> bool,
}

/// There is no place for the page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} may not be written by this user, and XDG_RUNTIME_DIR names no directory instead: name `page` in the \
     configuration",
    places::PAGE
)]
pub struct NoPlace;

impl DaemonConfig {
    /// Chooses the places that the configuration leaves open: those of the system where this user may write there, and
    /// otherwise the user's own. The control socket is beside the page then.
    ///
    /// # Errors
    /// There is no place for the page.
    pub fn settle(&mut self, around: &Surroundings<'_>) -> Result<(), NoPlace> {
        if around.must_move(&self.page) {
            self.page = chosen(around.runtime().ok_or(NoPlace)?.join(places::PAGE_NAME)).ok_or(NoPlace)?;
        }
        if self.control.value().is_some_and(|control| around.must_move(control))
            && let Some(control) = chosen(self.page.as_path().with_file_name(places::CONTROL_NAME))
        {
            self.control = Switchable::On(control);
        }
        if self.state.value().is_some_and(|state| around.must_move(state))
            && let Some(state) = around.state().and_then(chosen)
        {
            self.state = Switchable::On(state);
        }
        Ok(())
    }
}

impl Surroundings<'_> {
    fn must_move(&self, path: &FilePath) -> bool {
        // The state is a directory, and the others lie in one; what may be made in `/var/lib` may be made below it.
        path.is_usual() && !path.as_path().parent().is_some_and(|parent| (self.may_write)(parent) || self.owns(path))
    }

    /// A directory of the service's own, as `/var/lib/ffclock` is where `/var/lib` is root's.
    fn owns(&self, path: &FilePath) -> bool {
        path.as_path().is_dir() && (self.may_write)(path.as_path())
    }

    fn runtime(&self) -> Option<PathBuf> {
        self.directory("XDG_RUNTIME_DIR").map(|directory| directory.join(places::OF_USER))
    }

    fn state(&self) -> Option<PathBuf> {
        let home = || self.directory("HOME").map(|home| home.join(".local/state"));
        self.directory("XDG_STATE_HOME").or_else(home).map(|directory| directory.join(places::OF_USER))
    }

    /// A relative path in these variables is to be ignored.
    fn directory(&self, variable: &str) -> Option<PathBuf> {
        (self.variable)(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

/// `None` if it is not UTF-8.
fn chosen(path: PathBuf) -> Option<FilePath> {
    path.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(
        mut config: DaemonConfig,
        variables: &[(&str, &str)],
        writable: &[&str],
    ) -> Result<[String; 3], NoPlace> {
        let variable = |name: &str| variables.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into());
        let may_write = |path: &Path| writable.iter().any(|directory| path.starts_with(directory));
        config.settle(&Surroundings { variable: &variable, may_write: &may_write })?;
        Ok([config.page.to_string(), config.control.to_string(), config.state.to_string()])
    }

    const USER: [(&str, &str); 2] = [("XDG_RUNTIME_DIR", "/run/user/7"), ("HOME", "/people/seven")];

    #[test]
    fn who_may_write_there_uses_the_places_of_the_system() {
        let system = [places::PAGE, places::CONTROL, places::STATE].map(str::to_owned);
        assert_eq!(settled(DaemonConfig::default(), &[], &["/"]), Ok(system.clone()));
        assert_eq!(settled(DaemonConfig::default(), &USER, &["/run", "/var"]), Ok(system));
    }

    #[test]
    fn an_ordinary_user_has_places_of_his_own() {
        let own = |state: &str| {
            Ok(["/run/user/7/ffclock/page".to_owned(), "/run/user/7/ffclock/control".to_owned(), state.to_owned()])
        };
        let default = DaemonConfig::default;
        assert_eq!(settled(default(), &USER, &[]), own("/people/seven/.local/state/ffclock"));
        let state = [USER[0], ("XDG_STATE_HOME", "/state")];
        assert_eq!(settled(default(), &state, &[]), own("/state/ffclock"));
        let relative = [USER[0], USER[1], ("XDG_STATE_HOME", "state")];
        assert_eq!(settled(default(), &relative, &[]), own("/people/seven/.local/state/ffclock"));
        assert_eq!(
            settled(default(), &[USER[0]], &[]),
            own(places::STATE),
            "it says itself that it cannot write there"
        );
    }

    #[test]
    fn what_is_named_stays() {
        let mut config = DaemonConfig::default();
        config.set("page", "/tmp/clock/page").unwrap();
        let beside = ["/tmp/clock/page", "/tmp/clock/control", places::STATE].map(str::to_owned);
        assert_eq!(settled(config.clone(), &[], &[]), Ok(beside));
        config.set("control", "off").unwrap();
        config.set("state", places::STATE).unwrap();
        let named = ["/tmp/clock/page", "off", places::STATE].map(str::to_owned);
        assert_eq!(settled(config, &USER, &[]), Ok(named));
    }

    #[test]
    fn without_any_place_it_says_what_to_do() {
        let error = settled(DaemonConfig::default(), &[], &[]).unwrap_err();
        assert!(error.to_string().contains("name `page` in the configuration"), "{error}");
    }
}

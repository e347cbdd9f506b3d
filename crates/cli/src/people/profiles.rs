//! Where `bandstand login` keeps addresses and keys: one file that only its owner may read.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::environment;

/// The profile that is used when none is named.
pub(crate) const DEFAULT: &str = "default";

/// A server and who one is there.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Profile {
    pub(crate) url: String,
    pub(crate) key: String,
    pub(crate) handle: String,
}

/// Everything that is kept.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Profiles {
    /// The one in use.
    #[serde(default)]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) profiles: BTreeMap<String, Profile>,
}

impl Profiles {
    /// Reads them; none when the file is not there.
    pub(crate) fn load() -> anyhow::Result<Self> {
        Self::load_from(&path()?)
    }

    fn load_from(path: &Path) -> anyhow::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let mode = std::fs::metadata(path)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            bail!(
                "others may read the keys in {0} (mode {mode:04o}); after `chmod 600 {0}`, consider to rotate them",
                path.display()
            );
        }
        toml::from_str(&text).map_err(|error| anyhow!("{} cannot be read: {}", path.display(), error.message()))
    }

    /// Writes them, all or nothing.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        self.save_to(&path()?)
    }

    fn save_to(&self, path: &Path) -> anyhow::Result<()> {
        let folder = path.parent().context("the file of profiles has no folder")?;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let fresh = path.with_extension(format!("{}.new", std::process::id()));
        let text = toml::to_string(self)?;
        let written = (|| -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&fresh, path)
        })();
        if written.is_err() {
            let _ = std::fs::remove_file(&fresh);
        }
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    /// The name of the one in use.
    pub(crate) fn current(&self) -> &str {
        self.current.as_deref().unwrap_or(DEFAULT)
    }
}

/// Where the file is.
pub(crate) fn path() -> anyhow::Result<PathBuf> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME")
        .filter(|folder| folder.is_absolute())
        .or_else(|| set("HOME").map(|home| home.join(".config")))
        .ok_or_else(|| anyhow!("neither XDG_CONFIG_HOME nor HOME is set, so there is no place for profiles"))?;
    Ok(folder.join("bandstand").join("profiles.toml"))
}

/// Whether a profile can be called this.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_for_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bandstand/profiles.toml");
        assert!(Profiles::load_from(&path).unwrap().profiles.is_empty());
        let mut profiles = Profiles::default();
        let profile = Profile { url: "http://h".into(), key: "band_u_x".into(), handle: "ana".into() };
        profiles.profiles.insert("work".into(), profile);
        profiles.current = Some("work".into());
        profiles.save_to(&path).unwrap();
        profiles.save_to(&path).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let read = Profiles::load_from(&path).unwrap();
        assert_eq!((read.current(), read.profiles["work"].key.as_str()), ("work", "band_u_x"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let refused = Profiles::load_from(&path).err().map(|error| error.to_string()).unwrap();
        assert!(refused.contains("chmod 600") && !refused.contains("band_u_x"), "{refused}");
    }

    #[test]
    fn names() {
        assert!(is_name("work-2") && !is_name("") && !is_name("a b") && !is_name("a.b"));
    }
}

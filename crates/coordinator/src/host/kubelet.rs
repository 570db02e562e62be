//! Reads the kubelet's own client certificate, for `--identity=kubelet`.
//!
//! The kubelet renews it by writing another file and changing a symbolic link
//! (`kubelet-client-current.pem`), so the link is followed at each read.

use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::bounded_read::{first_bytes, open_nonblocking};
use super::sentinel::find_file_below;

/// In bytes; certificates and a key have some 3 KiB.
const LIMIT: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeletFiles {
    /// `--host-root`: symbolic links are followed inside it only.
    pub host_root: PathBuf,
    pub certificate: PathBuf,
    /// `None` if the key is in the certificate's file.
    pub key: Option<PathBuf>,
}

impl KubeletFiles {
    /// The current certificate and key; or why they cannot be read, and what to do.
    pub fn read_pem(&self) -> Result<Vec<u8>, String> {
        let mut pem = self.read_file(&self.certificate)?;
        if let Some(key) = &self.key {
            pem.push(b'\n');
            pem.extend(self.read_file(key)?);
        }
        Ok(pem)
    }

    fn read_file(&self, path: &Path) -> Result<Vec<u8>, String> {
        let failed = |why: String| {
            format!(
                "cannot read the kubelet's certificate {} below {}: {why}: mount its folder there, or set \
                 --kubelet-certificate and --kubelet-key",
                path.display(),
                self.host_root.display()
            )
        };
        let found = find_file_below(&self.host_root, path).map_err(failed)?;
        let file = open_nonblocking(&found, OFlags::NOFOLLOW)
            .map_err(|error| failed(error.to_string()))?;
        let bytes = first_bytes(&file, LIMIT).map_err(|error| failed(error.to_string()))?;
        if bytes.len() > LIMIT {
            return Err(failed(format!("it is larger than {LIMIT} bytes")));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const CURRENT: &str = "var/lib/kubelet/pki/kubelet-client-current.pem";

    fn files(root: &Path) -> KubeletFiles {
        KubeletFiles {
            host_root: root.to_owned(),
            certificate: Path::new("/").join(CURRENT),
            key: None,
        }
    }

    #[test]
    fn the_kubelets_absolute_link_is_followed_inside_the_host_root_and_anew_each_time() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("var/lib/kubelet/pki");
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [("2025.pem", "old"), ("2026.pem", "new")] {
            fs::write(folder.join(name), text).unwrap();
            let link = root.path().join(CURRENT);
            drop(fs::remove_file(&link));
            symlink(format!("/var/lib/kubelet/pki/{name}"), &link).unwrap();
            assert_eq!(files(root.path()).read_pem().unwrap(), text.as_bytes());
        }
        fs::write(folder.join("key.pem"), "key").unwrap();
        let with_key = KubeletFiles {
            key: Some("/var/lib/kubelet/pki/key.pem".into()),
            ..files(root.path())
        };
        assert_eq!(with_key.read_pem().unwrap(), b"new\nkey");
    }

    #[test]
    fn a_certificate_that_is_not_there_is_an_error_that_says_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        let error = files(root.path()).read_pem().unwrap_err();
        for words in [
            "kubelet-client-current.pem",
            "not there",
            "--kubelet-certificate",
        ] {
            assert!(error.contains(words), "{error}");
        }
    }
}

//! Where files are: by the platform's conventions, or in `MK_CONFIG_DIR`.

use std::path::{Path, PathBuf};

use crate::config::Env;

/// The name of a project's file.
pub(in crate::config) const PROJECT_FILE: &str = ".mk.toml";

/// All paths that configuration depends on; `None` where there is no home directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The directory of the following three.
    pub config_dir: Option<PathBuf>,
    /// The server's settings, unless another file is named.
    pub server_file: Option<PathBuf>,
    /// The client's settings.
    pub client_file: Option<PathBuf>,
    /// The client's keys, mode 0600.
    pub credentials_file: Option<PathBuf>,
    /// The project's settings, if the working directory is in a project that has any.
    pub project_file: Option<PathBuf>,
}

/// All paths, whether or not anything exists there.
pub fn paths(env: &Env) -> Paths {
    Paths {
        config_dir: config_dir(env),
        server_file: server_file(env),
        client_file: client_file(env),
        credentials_file: credentials_file(env),
        project_file: project_file(env),
    }
}

fn config_dir(env: &Env) -> Option<PathBuf> {
    env.path("MK_CONFIG_DIR").or_else(|| env.config_home.clone())
}

pub(in crate::config) fn server_file(env: &Env) -> Option<PathBuf> {
    config_dir(env).map(|dir| dir.join("server.toml"))
}

pub(in crate::config) fn client_file(env: &Env) -> Option<PathBuf> {
    config_dir(env).map(|dir| dir.join("config.toml"))
}

pub(in crate::config) fn credentials_file(env: &Env) -> Option<PathBuf> {
    config_dir(env).map(|dir| dir.join("credentials.toml"))
}

/// The nearest project file, from the working directory up to the root of its repository. Outside of a repository, only
/// the working directory is searched: what is above it may be anybody's.
pub(in crate::config) fn project_file(env: &Env) -> Option<PathBuf> {
    let start = env.working_dir.as_deref()?;
    let root = start.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(start);
    let within = |dir: &&Path| dir.starts_with(root);
    start.ancestors().take_while(within).map(|dir| dir.join(PROJECT_FILE)).find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Time;
    use std::fs;

    #[test]
    fn the_variable_outranks_the_platform() {
        let mut env = Env::bare([("MK_CONFIG_DIR", "/x")], Time::from_unix_ms(0));
        env.config_home = Some("/home/me/.config/mk".into());
        assert_eq!(paths(&env).server_file, Some("/x/server.toml".into()));
        let mut env = Env::bare([], Time::from_unix_ms(0));
        assert_eq!(paths(&env).server_file, None);
        env.config_home = Some("/home/me/.config/mk".into());
        assert_eq!(paths(&env).client_file, Some("/home/me/.config/mk/config.toml".into()));
    }

    #[test]
    fn a_project_ends_at_its_repository() {
        let dir = tempfile::tempdir().unwrap();
        let (repository, deep) = (dir.path().join("repo"), dir.path().join("repo/a/b"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(dir.path().join(PROJECT_FILE), "").unwrap();
        let mut env = Env::bare([], Time::from_unix_ms(0));
        env.working_dir = Some(deep.clone());
        assert_eq!(project_file(&env), None, "above the working directory, and no repository");
        fs::create_dir(repository.join(".git")).unwrap();
        assert_eq!(project_file(&env), None, "above the repository");
        fs::write(repository.join(PROJECT_FILE), "").unwrap();
        assert_eq!(project_file(&env), Some(repository.join(PROJECT_FILE)));
        fs::write(deep.join(PROJECT_FILE), "").unwrap();
        assert_eq!(project_file(&env), Some(deep.join(PROJECT_FILE)));
    }
}
